"""From one file to reports: sieve, model, rules."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainlint.analysis import FileModel, Project, SourceFile
from trainlint.analysis.source import first_line
from trainlint.finding import Finding, Fix
from trainlint.fixing.limits import can_edit
from trainlint.rule import Report, Rule
from trainlint.scout import Glance
from trainlint.search import Search


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The reports on one file, and what else the answer depends on.

    ``consulted``: other files whose content, or absence, was looked at. ``searches``: all files of
    the project were searched for these, so that another file that holds one may change the answer.
    """

    reports: list[Report]
    consulted: frozenset[Path]
    searches: frozenset[Search]


def sieve(glance: Glance, rules: Sequence[Rule]) -> list[Rule]:
    """The rules that could possibly fire in a file that looks like this."""
    return [rule for rule in rules if rule.scout.suspects(glance)]


def check_file(
    source: SourceFile, project: Project, rules: Sequence[Rule], *, use_scout: bool = True
) -> CheckResult:
    """Run the rules over one file.

    Raises:
        SourceError: the file cannot be parsed.
    """
    suspects = sieve(source.glance, rules) if use_scout else list(rules)
    if not suspects:
        return CheckResult([], frozenset(), frozenset())
    project.start_check()
    file = project.model(source)
    source = file.source
    reports = [report for rule in suspects for report in _reports(rule, file)]
    reports.sort(key=lambda report: (*_start(report.node), report.rule.code))
    reports = _without_repeats(reports)
    if any(report.repair for report in reports) and not can_edit(source.text, source.tree):
        reports = [dataclasses.replace(report, repair=None) for report in reports]
    return CheckResult(reports, frozenset(project.consulted), frozenset(project.searches))


def _reports(rule: Rule, file: FileModel) -> list[Report]:
    """What a rule says; nothing about code that nests deeper than this interpreter can follow."""
    try:
        return list(rule.check(file))
    except RecursionError:
        return []


def as_finding(report: Report, source: SourceFile) -> Finding:
    """The report as plain data, with the positions that users see."""
    line, column, end_line, end_column = _extent(report.node, source)
    first, last = _statement_lines(report.node, source)
    repair = report.repair
    return Finding(
        path=str(source.path),
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
        code=report.rule.code,
        rule=report.rule.name,
        severity=report.severity,
        message=report.message,
        help=report.help,
        fix=Fix(repair.applicability, repair.title) if repair else None,
        statement_line=first,
        statement_end_line=last,
    )


def _without_repeats(reports: list[Report]) -> list[Report]:
    """One report for a rule and place, however many ways lead there."""
    kept: dict[tuple[str, int, int], Report] = {}
    for report in reports:
        kept.setdefault((report.rule.code, *_start(report.node)), report)
    return list(kept.values())


def _start(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 1), getattr(node, "col_offset", 0)


def _extent(node: ast.AST, source: SourceFile) -> tuple[int, int, int, int]:
    """Lines and columns from 1; of compound statements and definitions only the first line."""
    line, offset = _start(node)
    if isinstance(node, _COMPOUND):
        text = source.lines[line - 1].rstrip() if line <= len(source.lines) else ""
        return line, _characters(source, line, offset) + 1, line, len(text) + 1
    end_line = getattr(node, "end_lineno", None) or line
    end_offset = getattr(node, "end_col_offset", None) or offset
    return (
        line,
        _characters(source, line, offset) + 1,
        end_line,
        _characters(source, end_line, end_offset) + 1,
    )


_COMPOUND = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.If,
    ast.With,
    ast.AsyncWith,
    ast.Try,
)


def _characters(source: SourceFile, line: int, offset: int) -> int:
    """``ast`` counts columns in UTF-8 bytes; users count characters."""
    if line > len(source.lines):
        return offset
    text = source.lines[line - 1]
    return offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))


def _statement_lines(node: ast.AST, source: SourceFile) -> tuple[int, int]:
    """The lines of the simple statement, or compound header, that holds the node."""
    line = getattr(node, "lineno", 1)
    statement = source.statement_at(line, getattr(node, "col_offset", 0))
    if statement is None:
        return line, line
    first = first_line(statement)
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
        return first, max(statement.lineno, first_line(body[0]) - 1)
    return first, statement.end_lineno or statement.lineno
