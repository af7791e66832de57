"""What ``trainlint check`` finds of the bugs that people marked in 65 real training files.

    python -m tests.bench.gold --corpus DIR                  the table
    python -m tests.bench.gold --corpus DIR --how-to-fetch   git commands that fill DIR
    make bench-gold CORPUS=DIR

``gold.tsv`` says for each file (repository, commit, path) which rule has to report which lines. Of
labels there are ``bug``; ``lesser`` (harm that depends on taste, speed, old interfaces); ``tricky``
(a line that a careless rule would report, ``*``: any rule); and ``disputed``, see ``DISPUTED``. A
bug counts as found if its rule reports one of its lines or one of up to three lines beside them: a
bug may be marked at a definition, a call, or an argument. Tricky lines are matched exactly.

``DIR`` holds each repository in a folder ``owner+name``. Exits with 1 if less than 90% of the bugs
are found or a tricky line is hit, with 2 if files are missing.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

GOLD = Path(__file__).with_name("gold.tsv")
BOUND = 0.9
_NEAR = 3
DISPUTED = {
    "eval-without-no-grad": "decorated helper (GPT-from-scratch), or `volatile=True`: how torch "
    "0.3, for which those files are written, said no_grad",
    "train-loader-no-shuffle": "listed as a bug and as tricky: the options come through `**kwargs` "
    "and hold `shuffle` only where an accelerator is used",
    "loss-arg-swap": "swapped MSE is harmless today; the rule warns of it on purpose where it is "
    "sure which side is the target",
}
"""Where we disagree with the marks, by rule, and why; these lines are counted nowhere."""


@dataclass(frozen=True)
class Mark:
    """One marked place of a file; ``rule`` is empty for a file without any mark."""

    repository: str
    commit: str
    path: str
    label: str
    rule: str
    lines: tuple[int, ...]

    @property
    def folder(self) -> str:
        """Where the repository lies below the corpus."""
        return self.repository.replace("/", "+")


@dataclass(frozen=True)
class Finding:
    """What the tool reported, with all lines of the place."""

    rule: str
    first: int
    last: int
    is_hint: bool


Findings = dict[tuple[str, str], list[Finding]]


def main(arguments: Sequence[str] | None = None, gold: Path = GOLD) -> None:
    """Check the files, print the table, and exit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, required=True, metavar="DIR")
    parser.add_argument("--how-to-fetch", action="store_true")
    options = parser.parse_args(arguments)
    marks = list(read(gold))
    if options.how_to_fetch:
        print("\n".join(how_to_fetch(marks, options.corpus)))
        return
    missing = {m for m in marks if not (options.corpus / m.folder / m.path).is_file()}
    if missing:
        files = len({(mark.repository, mark.path) for mark in missing})
        sys.stderr.write(
            f"gold: {files} files are not below {options.corpus}; fetch them: python -m "
            f"tests.bench.gold --corpus {options.corpus} --how-to-fetch | sh\n"
        )
        sys.exit(2)
    findings = {
        key: found
        for folder, paths in _by_folder(marks).items()
        for key, found in check(options.corpus, folder, sorted(paths)).items()
    }
    sys.exit(0 if report(marks, findings) else 1)


def read(gold: Path) -> Iterator[Mark]:
    """The marks of a table."""
    with gold.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            lines = tuple(int(line) for line in row["lines"].split(",") if line)
            yield Mark(
                row["repository"], row["commit"], row["path"], row["label"], row["rule"], lines
            )


def how_to_fetch(marks: Iterable[Mark], corpus: Path) -> Iterator[str]:
    """Shell commands that fetch each repository at its commit, and what of it is checked."""
    commits = {(mark.repository, mark.commit, mark.folder) for mark in marks}
    paths = _by_folder(marks)
    for repository, commit, folder in sorted(commits):
        for path in sorted(paths[folder]):
            yield f"# {repository} {commit} {path}"
        place = corpus / folder
        yield f"git clone --no-checkout https://github.com/{repository} '{place}'"
        yield f"git -C '{place}' checkout --quiet {commit}"


def _by_folder(marks: Iterable[Mark]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for mark in marks:
        found[mark.folder].add(mark.path)
    return found


def check(corpus: Path, folder: str, paths: Sequence[str]) -> Findings:
    """All findings in some files of a repository, with all rules selected."""
    command = ["check", "--select", "ALL", "--no-cache", "--exit-zero", "--output-format", "json"]
    ended = subprocess.run(
        [sys.executable, "-m", "trainlint", *command, *paths],
        cwd=corpus / folder,
        capture_output=True,
        text=True,
        check=True,
    )
    found: Findings = {(folder, path): [] for path in paths}
    for item in json.loads(ended.stdout)["findings"]:
        finding = Finding(item["rule"], item["line"], item["end_line"], item["severity"] == "info")
        found[(folder, item["path"])].append(finding)
    return found


def is_found(mark: Mark, findings: Findings) -> bool:
    """Whether the mark's rule reports one of its lines, or one close to them."""
    return any(
        finding.rule == mark.rule and finding.first - _NEAR <= line <= finding.last + _NEAR
        for finding in findings[(mark.folder, mark.path)]
        for line in mark.lines
    )


def hits(mark: Mark, marks: Iterable[Mark], findings: Findings) -> list[str]:
    """The rules that report a tricky line, but not those that other marks want there."""
    wanted = {
        other.rule
        for other in marks
        if (other.folder, other.path) == (mark.folder, mark.path)
        and other.label in ("bug", "lesser")
        and is_found(other, findings)
    }
    return [
        finding.rule
        for finding in findings[(mark.folder, mark.path)]
        if mark.lines[0] == finding.first
        and (finding.rule == mark.rule or (mark.rule == "*" and not finding.is_hint))
        and (mark.rule != "*" or finding.rule not in wanted)
    ]


def report(marks: Sequence[Mark], findings: Findings) -> bool:
    """Print the table, what is missed, hit and disputed; whether the bounds are met."""
    expected: Counter[tuple[str, str]] = Counter()
    found: Counter[tuple[str, str]] = Counter()
    missed, wrong, disputed = [], [], []
    for mark in marks:
        place = f"{mark.repository} {mark.path}:{','.join(map(str, mark.lines))} {mark.rule}"
        if mark.label in ("bug", "lesser"):
            expected[mark.rule, mark.label] += 1
            found[mark.rule, mark.label] += is_found(mark, findings)
            if mark.label == "bug" and not is_found(mark, findings):
                missed.append(place)
        elif mark.label == "tricky":
            expected[mark.rule, mark.label] += 1
            rules = hits(mark, marks, findings)
            found[mark.rule, mark.label] += bool(rules)
            wrong += [f"{place}: {', '.join(rules)}"] if rules else []
        elif mark.label == "disputed":
            said = "reported" if is_found(mark, findings) else "not reported"
            disputed.append(f"{place}: {said}; {DISPUTED[mark.rule]}")
    _print_table(expected, found)
    for title, places in (("missed", missed), ("tricky lines hit", wrong), ("disputed", disputed)):
        print(f"\n{title}: {len(places)}", *places, sep="\n  ")
    bugs = sum(count for (_, label), count in expected.items() if label == "bug")
    return len(missed) <= (1 - BOUND) * bugs and not wrong


def _print_table(expected: Counter[tuple[str, str]], found: Counter[tuple[str, str]]) -> None:
    labels = ("bug", "lesser", "tricky")
    print(f"{'rule':32}{'bugs found':>12}{'lesser found':>14}{'tricky hit':>12}")
    for rule in sorted({rule for rule, _ in expected}):
        cells = [f"{found[rule, label]}/{expected[rule, label]}" for label in labels]
        print(f"{rule:32}{cells[0]:>12}{cells[1]:>14}{cells[2]:>12}")
    totals = [
        f"{sum(n for (_, each), n in found.items() if each == label)}"
        f"/{sum(n for (_, each), n in expected.items() if each == label)}"
        for label in labels
    ]
    print(f"{'all':32}{totals[0]:>12}{totals[1]:>14}{totals[2]:>12}")


if __name__ == "__main__":
    main()
