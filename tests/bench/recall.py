"""How many planted bugs ``trainlint check`` finds: correct programs, each broken in one way.

    make bench-recall                    the table
    python -m tests.bench.recall --misses    and each mutant that was not found

Needs a package index the first time: takes the source distributions that ``sources`` names. A
mutant counts as found if the rule that its operator names reports something in the broken file
that it did not report in the file as it was.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.bench.mutations import OPERATORS, Program
from tests.bench.sources import Source, sources
from trainlint.analysis import Project, SourceFile
from trainlint.engine import as_finding, check_file
from trainlint.finding import Finding
from trainlint.registry import all_rules
from trainlint.rule import Rule

BY_READING = Path(__file__).with_name("by_reading.tsv")


@dataclass(frozen=True)
class Planted:
    """A bug that was planted at a place, and whether the rule that it is for noticed."""

    operator: str
    rule: str
    source: str
    place: str
    found: bool


@dataclass(frozen=True)
class Answer:
    """What came of one file: its mutants, and what the rules say about it as it is."""

    planted: list[Planted]
    unbroken: list[tuple[str, str, Finding]]


def main() -> None:
    """Break, check, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--misses", action="store_true", help="list the mutants not found")
    parser.add_argument("--operator", help="only operators whose name or rule holds this text")
    parser.add_argument("--source", help="only sources whose name holds this text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    wanted = parser.parse_args()
    names = [
        item.name
        for item in OPERATORS
        if wanted.operator is None or wanted.operator in f"{item.name} {item.finds}"
    ]
    tasks = [
        (source, path, names)
        for source in sources()
        if wanted.source is None or wanted.source in source.name
        for path in source.files
    ]
    with ProcessPoolExecutor(wanted.jobs) as pool:
        answers = list(pool.map(_answer, *zip(*tasks, strict=True), chunksize=4))
    planted = [item for answer in answers for item in answer.planted]
    judged = _judged_by_reading()
    counted = [item for item in planted if (item.operator, item.source, item.place) not in judged]
    _print_table(counted)
    if wanted.misses:
        _print_misses(counted)
    _print_unbroken([item for answer in answers for item in answer.unbroken], judged)
    print(f"\njudged by reading ({BY_READING.name}): no bug after all, or a true finding:")
    for (name, source, place), why in judged.items():
        print(f"  {name}: {source} {place}: {why}")


def _judged_by_reading() -> dict[tuple[str, str, str], str]:
    """What only a reader can tell, with the reason, by operator or rule, source and place."""
    with BY_READING.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines, delimiter="\t"))[1:]
    return {(name, source, place): why for name, source, place, why in rows}


@cache
def _rules() -> dict[str, Rule]:
    return {rule.name: rule for rule in all_rules()}


def _answer(source: Source, path: Path, names: list[str]) -> Answer:
    """All mutants of one file, each checked in its project."""
    text = path.read_text("utf-8")
    try:
        program = Program(path, text)
    except SyntaxError:
        return Answer([], [])
    operators = [item for item in OPERATORS if item.name in names]
    mutants = [(item, each) for item in operators for each in item.breaks(program)]
    if not mutants:
        return Answer([], [])
    project = Project(source.root)
    before = _findings(project, path, text, {item.finds for item, _ in mutants})
    planted: list[Planted] = []
    for item, mutation in mutants:
        broken = program.edited(mutation.edits)
        after = _findings(project, path, broken, {item.finds})
        known = Counter(_told(finding) for finding in before if finding.rule == item.finds)
        is_found = bool(Counter(map(_told, after)) - known)
        place = f"{path.relative_to(source.root).as_posix()}:{mutation.line}"
        planted.append(Planted(item.name, item.finds, source.name, place, is_found))
    here = path.relative_to(source.root).as_posix()
    return Answer(planted, [(source.name, f"{here}:{item.line}", item) for item in before])


def _told(finding: Finding) -> str:
    """What a finding says, but for the lines, which move."""
    return re.sub(r"\d+", "", finding.message)


def _findings(project: Project, path: Path, text: str, names: set[str]) -> list[Finding]:
    file = SourceFile.from_text(path, text)
    rules = [_rules()[name] for name in sorted(names)]
    reports = check_file(file, project, rules).reports
    return [as_finding(report, file) for report in reports]


def _print_table(planted: list[Planted]) -> None:
    print(f"{'operator':<46} {'rule':<30} {'mutants':>7} {'found':>6} {'share':>6}")
    for operator in OPERATORS:
        mine = [item for item in planted if item.operator == operator.name]
        if mine:
            _print_row(operator.name, operator.finds, mine)
    _print_row("all", "", planted)


def _print_row(name: str, rule: str, planted: list[Planted]) -> None:
    found = sum(item.found for item in planted)
    share = f"{100 * found / len(planted):.0f} %" if planted else "-"
    print(f"{name:<46} {rule:<30} {len(planted):>7} {found:>6} {share:>6}")


def _print_misses(planted: list[Planted]) -> None:
    print("\nnot found:")
    for item in planted:
        if not item.found:
            print(f"  {item.operator}: {item.source} {item.place}")


def _print_unbroken(
    findings: list[tuple[str, str, Finding]], judged: dict[tuple[str, str, str], str]
) -> None:
    print("\nfindings of these rules in the files as they are, those judged true left out:")
    for source, place, item in findings:
        if (item.rule, source, place) not in judged:
            print(f"  {item.rule}: {source} {place}: {item.message}")


if __name__ == "__main__":
    main()
