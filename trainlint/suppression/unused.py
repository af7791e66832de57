"""A suppression that hides nothing, and its removal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trainlint.analysis import SourceFile
from trainlint.finding import Finding
from trainlint.suppression.directives import Directive, Kind


@dataclass(frozen=True, slots=True)
class UnusedSuppression:
    """A report of the rule ``unused-suppression``.

    ``finding`` is for the output. ``entries`` are the names that can go; none means the whole
    directive. A finding without a fix names no rule, and ``remove_unused`` leaves it alone.
    """

    finding: Finding
    directive: Directive
    entries: tuple[str, ...]


def remove_unused(text: str, unused: Iterable[UnusedSuppression]) -> str:
    """The text that the reports are about, without what suppresses nothing.

    The last name takes its comment along, and a comment on a line of its own takes the line. Other
    names, other comments and the code stay as they are.
    """
    lines = list(SourceFile.from_text(Path(), text).lines)
    removable = [each for each in unused if each.finding.fix is not None]
    removable.sort(key=lambda each: (each.directive.line, each.directive.column), reverse=True)
    for each in removable:
        index = each.directive.line - 1
        lines[index] = _without(lines[index], each.directive, each.entries)
    return "".join(lines)


def _without(line: str, directive: Directive, entries: tuple[str, ...]) -> str:
    kept = [entry for entry in directive.entries if entry not in entries]
    before, after = line[: directive.column], line[directive.end_column :]
    if entries and kept:
        words = line[directive.written_end : directive.end_column]
        return before + _rewritten(line, directive, kept) + words + after
    code = before.rstrip(" \t")
    line_end = after[len(after.rstrip("\r\n")) :]
    other_comment = after.strip()
    if other_comment:
        return before + other_comment + line_end
    return code + line_end if code.strip("\ufeff\f") else code.strip(" \t\f")


def _rewritten(line: str, directive: Directive, kept: list[str]) -> str:
    written = line[directive.column : directive.written_end]
    separator = ", " if ", " in written or "," not in written else ","
    opening = ":" if directive.kind is Kind.NOQA else "["
    closing = "" if directive.kind is Kind.NOQA else "]"
    head, _, names = written.partition(opening)
    space = names[: len(names) - len(names.lstrip())]
    return head + opening + space + separator.join(kept) + closing
