"""Writes suppression comments for findings, as ``--add-ignore`` does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainlint.analysis import SourceFile
from trainlint.finding import Finding
from trainlint.suppression.comments import Comments, find_comments
from trainlint.suppression.directives import Directive, Kind, directives_of

_BRACKET = re.compile(r"\[([^\]]*)\]")


@dataclass(frozen=True, slots=True)
class AddedIgnores:
    """A text with comments added.

    ``count`` findings are now suppressed. ``unplaced`` findings are not: no comment can stand on
    or above their statement.
    """

    text: str
    count: int
    unplaced: tuple[Finding, ...]


def add_ignores(text: str, findings: Sequence[Finding]) -> AddedIgnores:
    """Add ``# trainlint: ignore[rule-name]`` for each finding.

    The names join a suppression that already speaks about the statement; else the comment goes
    to the end of the finding's line, behind any other comment; else, where that line ends inside
    a string or with a backslash, to another line of the statement; else to a line of its own
    above. Findings that are suppressed already change nothing. Lines of the findings are lines
    of ``text``.
    """
    writer = _IgnoreWriter(text)
    unplaced = [finding for finding in findings if not writer.place(finding)]
    return AddedIgnores(writer.written(), len(findings) - len(unplaced), tuple(unplaced))


class _IgnoreWriter:
    """Collects the rule names for each place first, so that all line numbers stay true."""

    def __init__(self, text: str) -> None:
        self._lines = list(SourceFile.from_text(Path(), text).lines)
        self._line_end = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
        self._comments: Comments = find_comments(text)
        self._directives = directives_of(self._comments)
        self._merged: dict[Directive, list[str]] = {}
        self._trailing: dict[int, list[str]] = {}
        self._above: dict[int, list[str]] = {}

    def place(self, finding: Finding) -> bool:
        """Choose where the finding's name goes; False when there is no place."""
        if any(directive.covers(finding) for directive in self._directives):
            return True
        names = self._names_near(finding)
        if names is None:
            return False
        if finding.rule not in names:
            names.append(finding.rule)
        return True

    def _names_near(self, finding: Finding) -> list[str] | None:
        """The names of the comment, present or planned, that suits the finding."""
        for directive in self._directives:
            if directive.kind is Kind.IGNORE and directive.entries and directive.reaches(finding):
                return self._merged.setdefault(directive, [])
        for line in self._lines_of(finding):
            if self._takes_comment(line):
                return self._trailing.setdefault(line, [])
        if finding.statement_line - 1 not in self._comments.open_line_ends:
            return self._above.setdefault(finding.statement_line, [])
        return None

    def _lines_of(self, finding: Finding) -> Iterator[int]:
        yield finding.line
        yield from range(finding.statement_end_line, finding.statement_line - 1, -1)

    def _takes_comment(self, line: int) -> bool:
        comment = self._comments.by_line.get(line)
        alone = comment is not None and comment.own_line
        blank = not self._lines[line - 1].strip()
        return not (alone or blank or line in self._comments.open_line_ends)

    def written(self) -> str:
        """The text with all comments in place."""
        lines = list(self._lines)
        for directive, names in self._merged.items():
            lines[directive.line - 1] = _with_merged(lines[directive.line - 1], directive, names)
        for line, names in self._trailing.items():
            lines[line - 1] = self._with_trailing(lines[line - 1], names)
        for line in sorted(self._above, reverse=True):
            indentation = re.match(r"[ \t\f]*", lines[line - 1])
            comment = (indentation[0] if indentation else "") + _comment(self._above[line])
            lines.insert(line - 1, comment + self._line_end)
        return "".join(lines)

    def _with_trailing(self, line: str, names: list[str]) -> str:
        code = line.rstrip("\r\n")
        return f"{code.rstrip()}  {_comment(names)}{line[len(code) :]}"


def _comment(names: list[str]) -> str:
    return f"# trainlint: ignore[{', '.join(sorted(names))}]"


def _with_merged(line: str, directive: Directive, names: list[str]) -> str:
    start, end = directive.column, directive.written_end
    written = line[start:end]
    both = ", ".join([*directive.entries, *sorted(names)])
    return line[:start] + _BRACKET.sub(lambda _: f"[{both}]", written, count=1) + line[end:]
