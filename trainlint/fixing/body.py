"""The statements of one block while they are edited.

White space above a statement has two parts: the comments directly above it belong to it and move
with it; blank lines, and what stands above them, belong to the place and stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import libcst as cst

from trainlint.fixing.document import Block, Line, Statement
from trainlint.fixing.errors import CannotFix
from trainlint.fixing.white_space import is_blank, split_at_last_blank, with_empty_blank_lines


@dataclass(slots=True)
class _Entry:
    line: Line
    statements: Sequence[Statement] = ()


class Body:
    """The lines of a block; a statement is known by its node in the original tree.

    A line of several statements is taken apart only if an edit speaks of one of them, and so is
    the body of a one-line ``if x: y``.
    """

    def __init__(self, original: Block, updated: Block, statements: set[Statement]) -> None:
        self._updated = updated
        self._imported: set[str] = set()
        if isinstance(original, cst.SimpleStatementSuite):
            self._entries = _taken_apart(original, updated)
            return
        self._entries = []
        for line, new_line in zip(original.body, updated.body, strict=True):
            if isinstance(line, cst.SimpleStatementLine) and (
                len(line.body) == 1 or not statements.isdisjoint(line.body)
            ):
                self._entries += _taken_apart(line, new_line)
            else:
                self._entries.append(_Entry(cast("Line", new_line), _members(line)))

    def block(self) -> cst.Module | cst.IndentedBlock:
        """The block with the statements as they are now."""
        lines = [entry.line for entry in self._entries]
        if isinstance(self._updated, cst.Module):
            return self._updated.with_changes(body=lines)
        if not lines:
            lines = [cst.SimpleStatementLine([cst.Pass()])]
        if isinstance(self._updated, cst.IndentedBlock):
            return self._updated.with_changes(body=lines)
        return cst.IndentedBlock(lines)

    def insert_first(self, lines: Sequence[Line], below: Statement | None) -> None:
        """Add lines at the top, or below a docstring."""
        index = 0 if below is None else self._index(below) + 1
        self._entries[index:index] = [_Entry(line) for line in lines]

    def insert_before(self, statement: Statement, lines: Sequence[Line]) -> None:
        """Add lines above a statement and its comments."""
        index = self._index(statement)
        old = self._entries[index]
        place, comments = split_at_last_blank(old.line.leading_lines)
        first = lines[0].with_changes(leading_lines=[*place, *lines[0].leading_lines])
        old.line = old.line.with_changes(leading_lines=comments)
        self._entries[index:index] = [_Entry(line) for line in (first, *lines[1:])]

    def insert_after(self, statement: Statement, lines: Sequence[Line]) -> None:
        """Add lines below a statement."""
        index = self._index(statement) + 1
        self._entries[index:index] = [_Entry(line) for line in lines]

    def remove(self, statement: Statement, *, with_comments: bool = False) -> None:
        """Remove a statement; what stands above it stays, its own comments only if asked."""
        index = self._index(statement)
        removed = self._entries.pop(index).line
        left = list(removed.leading_lines)
        if with_comments:
            left = split_at_last_blank(removed.leading_lines)[0]
        if index < len(self._entries):
            following = self._entries[index]
            lines = _joined(left, following.line.leading_lines)
            following.line = following.line.with_changes(leading_lines=lines)
        elif not all(is_blank(line) for line in left):
            self._leave_at_the_end(left)

    def replace(self, statement: Statement, lines: Sequence[Line]) -> None:
        """Put lines in the place of a statement; the comments around it stay."""
        index = self._index(statement)
        old = self._entries[index].line
        first = lines[0].with_changes(leading_lines=[*old.leading_lines, *lines[0].leading_lines])
        new = [first, *lines[1:]]
        new[-1] = _with_comment_at_end(new[-1], old)
        self._entries[index : index + 1] = [_Entry(line) for line in new]

    def put(self, statement: Statement, moved: Line) -> None:
        """Put a statement from elsewhere, with its comments, in the place of ``statement``."""
        entry = self._entries[self._index(statement)]
        place, _ = split_at_last_blank(entry.line.leading_lines)
        _, comments = split_at_last_blank(moved.leading_lines)
        entry.line = moved.with_changes(leading_lines=[*place, *comments])

    def wrap(self, first: Statement, last: Statement, header: cst.BaseCompoundStatement) -> None:
        """Indent the lines from ``first`` to ``last`` below ``header``."""
        start, end = self._index(first), self._index(last) + 1
        lines = [entry.line for entry in self._entries[start:end]]
        place, comments = split_at_last_blank(lines[0].leading_lines)
        lines[0] = lines[0].with_changes(leading_lines=comments)
        lines = [with_empty_blank_lines(line) for line in lines]
        wrapped = cast(
            "Line", header.with_changes(leading_lines=place, body=cst.IndentedBlock(lines))
        )
        self._entries[start:end] = [_Entry(wrapped)]

    def add_import(self, lines: Sequence[Line], below: Statement | None) -> None:
        """Add an import below the line that ends with ``below``, once."""
        code = cst.Module(lines).code
        if code not in self._imported:
            self._imported.add(code)
            self.insert_first(lines, below)

    def _index(self, statement: Statement) -> int:
        for index, entry in enumerate(self._entries):
            if any(member is statement for member in entry.statements):
                return index
        raise CannotFix("another edit of this repair removed or replaced the statement")

    def _leave_at_the_end(self, lines: Sequence[cst.EmptyLine]) -> None:
        if isinstance(self._updated, (cst.Module, cst.IndentedBlock)):
            footer = [*lines, *self._updated.footer]
            self._updated = self._updated.with_changes(footer=footer)


def _members(line: cst.BaseStatement) -> Sequence[Statement]:
    if isinstance(line, cst.SimpleStatementLine):
        return line.body
    assert isinstance(line, cst.BaseCompoundStatement)
    return (line,)


def _taken_apart(
    original: cst.SimpleStatementLine | cst.SimpleStatementSuite, updated: cst.CSTNode
) -> list[_Entry]:
    assert isinstance(updated, (cst.SimpleStatementLine, cst.SimpleStatementSuite))
    entries = [
        _Entry(
            cst.SimpleStatementLine([new.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]),
            (statement,),
        )
        for statement, new in zip(original.body, updated.body, strict=True)
    ]
    if isinstance(updated, cst.SimpleStatementLine):
        if len(entries) == 1:
            return [_Entry(updated, original.body)]
        first = entries[0]
        first.line = first.line.with_changes(leading_lines=updated.leading_lines)
    last = entries[-1]
    last.line = last.line.with_changes(trailing_whitespace=updated.trailing_whitespace)
    return entries


def _joined(
    left: Sequence[cst.EmptyLine], following: Sequence[cst.EmptyLine]
) -> list[cst.EmptyLine]:
    """The lines above what was removed and above what follows, without two gaps for one."""
    has_comment = not all(is_blank(line) for line in left)
    gap_follows = bool(following) and is_blank(following[0])
    if gap_follows and not has_comment:
        return list(following)
    return [*left, *following]


def _with_comment_at_end(line: Line, old: Line) -> Line:
    if not isinstance(old, cst.SimpleStatementLine):
        return line
    if not isinstance(line, cst.SimpleStatementLine) or line.trailing_whitespace.comment:
        return line
    return line.with_changes(trailing_whitespace=old.trailing_whitespace)
