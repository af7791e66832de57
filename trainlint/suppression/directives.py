"""What a suppression comment says: the rules it names, and the findings it covers."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainlint.finding import Finding
from trainlint.suppression.comments import Comment, Comments

UNUSED_SUPPRESSION = "unused-suppression"
"""The rule that judges suppressions: only its own name hides it, never a bare comment."""

_IGNORE = re.compile(
    r"\#[ \t]*trainlint:[ \t]*(?P<kind>file-ignore|ignore)\b(?!-)"
    r"(?:[ \t]*\[(?P<names>[, \t]*[^, \t\r\n\]][^\]\r\n]*)\]|(?![ \t]*\[))"
)
_NOQA = re.compile(
    r"\#[ \t]*noqa\b(?:[ \t]*:[ \t]*(?P<names>[A-Z]+[0-9]+\b(?:[, \t]+[A-Z]+[0-9]+\b)*))?",
    re.IGNORECASE,
)


class Kind(enum.Enum):
    """The form of a suppression."""

    IGNORE = "ignore"
    FILE_IGNORE = "file-ignore"
    NOQA = "noqa"


@dataclass(frozen=True, slots=True)
class Directive:
    """One suppression; a comment may hold several.

    ``entries`` are the names and codes as written; empty means every rule. ``column`` and
    ``end_column`` (from 0, exclusive) are the directive with the words that follow it, up to
    the next ``#``; ``written_end`` is where the directive itself ends. ``line_below`` is the line
    below the comment's block when the comment has a line of its own.
    """

    kind: Kind
    line: int
    column: int
    written_end: int
    end_column: int
    entries: tuple[str, ...]
    line_below: int | None

    def covers(self, finding: Finding) -> bool:
        """Whether the directive hides the finding."""
        return self.reaches(finding) and self.names(finding)

    def reaches(self, finding: Finding) -> bool:
        """Whether the finding's statement is one that the directive speaks about."""
        if self.kind is Kind.FILE_IGNORE:
            return True
        if self.kind is Kind.IGNORE and finding.statement_line == self.line_below:
            return True
        # A statement ends with code, so a comment block at its very end belongs to what follows.
        last_line = self.line if self.line_below is None else self.line_below
        return finding.statement_line <= self.line and last_line <= finding.statement_end_line

    def names(self, finding: Finding) -> bool:
        """Whether the directive is about the finding's rule."""
        if not self.entries:
            return finding.rule != UNUSED_SUPPRESSION
        return any(self.entry_names(entry, finding.rule, finding.code) for entry in self.entries)

    def entry_names(self, entry: str, rule: str, code: str) -> bool:
        """Whether one of the entries means this rule; ``noqa`` takes the start of a code too."""
        if self.kind is Kind.NOQA:
            return code.startswith(entry.upper())
        return entry.lower() == rule or entry.upper() == code


def directives_of(comments: Comments) -> list[Directive]:
    """Every suppression in these comments, in the order of the file."""
    found = [
        directive
        for comment in comments.by_line.values()
        for directive in _directives_in(comment, comments.line_below_block(comment))
    ]
    return sorted(found, key=lambda directive: (directive.line, directive.column))


def _directives_in(comment: Comment, line_below: int | None) -> Iterator[Directive]:
    for kind, match in _matches(comment.text):
        next_comment = comment.text.find("#", match.end())
        words = comment.text[: None if next_comment < 0 else next_comment].rstrip()
        yield Directive(
            kind,
            comment.line,
            comment.column + match.start(),
            comment.column + match.end(),
            comment.column + len(words),
            _entries(match),
            line_below,
        )


def looks_of(text: str) -> Iterator[tuple[Kind, tuple[str, ...]]]:
    """Kind and entries of all that looks like a suppression in the text, even within strings."""
    for kind, match in _matches(text):
        yield kind, _entries(match)


def _matches(text: str) -> Iterator[tuple[Kind, re.Match[str]]]:
    for match in _IGNORE.finditer(text):
        yield Kind(match["kind"]), match
    for match in _NOQA.finditer(text):
        yield Kind.NOQA, match


def _entries(match: re.Match[str]) -> tuple[str, ...]:
    return tuple(filter(None, re.split(r"[,\s]+", match["names"] or "")))
