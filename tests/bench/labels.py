"""What ``trainlint check`` says about real repositories, beside what a reader said of each finding.

    make bench-labels CORPUS=folder

The folder holds one repository (or unpacked source distribution) a subfolder, named
``owner+name`` (or ``name-version``) as in the second column of ``labels.tsv``. Each is checked as
it stands, with the rules that run by default and no path excluded. Exits with 1 if a finding has no
label, or less than 95 % of them are not false. Lists true findings of old that are not made today.

Rows without a reason are of the repositories in ``unseen.tsv``, which nobody had tuned on before
they were read; that table says what was found there at first look, before any mending, in three
samples: each later one was taken when what the earlier ones had shown was mended, or nearly. Of 71
repositories of the first two samples only a part of the files was there.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

LABELS = Path(__file__).with_name("labels.tsv")
NOT_FALSE_AT_LEAST = 0.95


def main() -> int:
    """Check every repository and print the labels by rule, and the findings without one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", help="folders of repositories")
    folders: list[Path] = parser.parse_args().folders
    projects = sorted(path for folder in folders for path in folder.iterdir() if path.is_dir())
    labels = known_labels()
    by_rule: dict[str, Counter[str]] = {}
    unread: list[tuple[str, str, str]] = []
    expected = {
        place: label
        for place, label in labels.items()
        if place[1].partition("/")[0] in {project.name for project in projects}
    }
    for project in projects:
        for place in findings_in(project):
            expected.pop(place, None)
            label = labels.get(place)
            if label is None:
                unread.append(place)
            by_rule.setdefault(place[0], Counter())[label or "unread"] += 1
    print(f"{len(projects)} projects\n")
    _print_table(by_rule)
    for place in unread:
        print("unread:", *place)
    for place, label in expected.items():
        if label == "true":
            print("no longer reported:", *place)
    total = sum(by_rule.values(), Counter[str]())
    not_false = 1 - total["false"] / max(total.total(), 1)
    print(f"\n{total.total()} findings, {not_false:.1%} not false, {len(unread)} unread")
    return int(bool(unread) or not_false < NOT_FALSE_AT_LEAST)


def known_labels() -> dict[tuple[str, str, str], str]:
    """The label of each place: rule, path below the corpus, line (in a notebook, of its cell)."""
    with LABELS.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {(row["rule"], row["place"], row["line"]): row["label"] for row in rows}


def findings_in(project: Path) -> Iterator[tuple[str, str, str]]:
    """The errors and warnings of a project, as ``labels.tsv`` names them."""
    command = [sys.executable, "-m", "trainlint", "check", "--no-cache", "--exit-zero"]
    answer = subprocess.run(
        [*command, "--output-format", "json", "."],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode not in (0, 2) or not answer.stdout:
        raise SystemExit(f"{project}: trainlint ended with {answer.returncode}\n{answer.stderr}")
    for finding in json.loads(answer.stdout)["findings"]:
        yield finding["rule"], f"{project.name}/{finding['path']}", str(finding["line"])


def _print_table(by_rule: dict[str, Counter[str]]) -> None:
    columns = ("true", "arguable", "false", "unread")
    print(f"{'rule':32}" + "".join(f"{column:>10}" for column in columns))
    for rule, counts in sorted(by_rule.items()):
        print(f"{rule:32}" + "".join(f"{counts[column]:10}" for column in columns))


if __name__ == "__main__":
    raise SystemExit(main())
