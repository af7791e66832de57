"""A correct program as text and tree, with the questions that operators ask before they break it.

The questions are deliberately plain (names, blocks, nesting) and know nothing of trainlint's own
analysis: what is measured must not choose what it is measured on.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.Module | Function
LoopNode = ast.For | ast.AsyncFor | ast.While
_SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


@dataclass(frozen=True)
class Edit:
    """Characters ``start`` to ``end`` of the text become ``text``."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Mutation:
    """One way to break a program: what was broken stands on ``line``, counted from 1."""

    line: int
    edits: tuple[Edit, ...]


class Program:
    """One file.

    Raises:
        SyntaxError: on construction, if this Python cannot parse it.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text
        self.tree = ast.parse(text)
        self._parents: dict[ast.AST, ast.AST] = {}
        self._extents: dict[ast.AST, tuple[int, int]] = {}
        self._calls: list[tuple[int, ast.Call]] = []
        self._number(self.tree)

    def _number(self, node: ast.AST) -> None:
        """Number all nodes from the top down, so that those inside a node are a range."""
        first = len(self._extents)
        self._extents[node] = (first, first)
        if isinstance(node, ast.Call):
            self._calls.append((first, node))
        for child in ast.iter_child_nodes(node):
            self._parents[child] = node
            self._number(child)
        self._extents[node] = (first, len(self._extents))

    @cached_property
    def _line_starts(self) -> list[int]:
        lines = self.text.split("\n")
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)
        return starts

    def _offset(self, line: int, column: int) -> int:
        """``ast`` counts columns in UTF-8 bytes; edits count characters."""
        start = self._line_starts[line - 1]
        text = self.text[start : self._line_starts[line] - 1]
        return start + len(text.encode()[:column].decode())

    def start(self, node: ast.expr | ast.stmt) -> int:
        """The offset of a node's first character."""
        return self._offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        """The offset after a node's last character."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.end_lineno, node.end_col_offset)

    def source(self, node: ast.expr | ast.stmt) -> str:
        """A node's own text."""
        return self.text[self.start(node) : self.end(node)]

    # ---- where a node stands ---------------------------------------------------------------------

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, innermost first."""
        while node in self._parents:
            node = self._parents[node]
            yield node

    def parent(self, node: ast.AST) -> ast.AST:
        """The node directly around a node."""
        return self._parents[node]

    def scope(self, node: ast.AST) -> Scope:
        """The function, else the module, whose body holds a node."""
        for above in self.ancestors(node):
            if isinstance(above, _SCOPES):
                return above
        return self.tree

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds a node."""
        while not isinstance(node, ast.stmt):
            node = self._parents[node]
        return node

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The list of statements that a statement stands in."""
        above = self._parents[statement]
        for name in ("body", "orelse", "finalbody"):
            block = getattr(above, name, None)
            if isinstance(block, list) and statement in block:
                return block
        return [statement]

    def loops(self, node: ast.AST) -> list[LoopNode]:
        """The loops around a node in its own function, innermost first."""
        found: list[LoopNode] = []
        for above in self.ancestors(node):
            if isinstance(above, _SCOPES):
                break
            if isinstance(above, _LOOPS):
                found.append(above)
        return found

    def callers(self, scope: Scope) -> list[ast.Call]:
        """The calls in this file of a function, told by its name."""
        if isinstance(scope, ast.Module):
            return []
        return [
            call
            for call in self.calls(self.tree)
            if scope.name == getattr(call.func, "attr", getattr(call.func, "id", None))
            and self.scope(call) is not scope
        ]

    def repeats(self, node: ast.AST, depth: int = 2) -> bool:
        """Whether a loop of this file runs a node, directly or by calling its function."""
        if self.loops(node):
            return True
        calls = self.callers(self.scope(node)) if depth else []
        return any(self.repeats(call, depth - 1) for call in calls)

    # ---- what stands somewhere -------------------------------------------------------------------

    def calls(self, within: ast.AST, *names: str) -> list[ast.Call]:
        """Calls below a node in source order; of these function or method names, if given."""
        first, last = self._extents[within]
        start = bisect_left(self._calls, first, key=itemgetter(0))
        found = [
            call
            for number, call in self._calls[start:]
            if number < last and (not names or called_name(call) in names)
        ]
        return sorted(found, key=lambda call: (call.lineno, call.col_offset))

    def statement_calls(self, *names: str) -> Iterator[tuple[ast.Expr, ast.Call]]:
        """Statements that are nothing but ``receiver.name(...)``, with the call."""
        for call in self.calls(self.tree, *names):
            statement = self._parents[call]
            if isinstance(statement, ast.Expr) and isinstance(call.func, ast.Attribute):
                yield statement, call

    def assigned_calls(
        self, *names: str
    ) -> Iterator[tuple[ast.Assign | ast.AnnAssign, str, ast.Call]]:
        """``target = name(...)`` with one target; of any name, if none is given."""
        for call in self.calls(self.tree, *names):
            statement = self._parents[call]
            if isinstance(statement, ast.AnnAssign):
                yield statement, self.source(statement.target), call
            elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                yield statement, self.source(statement.targets[0]), call

    def receiver(self, call: ast.Call) -> str:
        """The text before the dot of a method call."""
        assert isinstance(call.func, ast.Attribute)
        return self.source(call.func.value)

    def names_like(self, pattern: str, text: str) -> bool:
        """Whether the last name of a dotted text matches a pattern."""
        return re.search(pattern, text.rsplit(".", 1)[-1], re.IGNORECASE) is not None

    # ---- edits -----------------------------------------------------------------------------------

    def replace(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        """The node's text becomes another."""
        return Edit(self.start(node), self.end(node), text)

    def remove(self, statement: ast.stmt) -> Edit:
        """The statement does nothing any more."""
        return self.replace(statement, "pass")

    def insert_before(self, statement: ast.stmt, text: str) -> Edit:
        """A new statement of one line goes in front of one that starts its line."""
        start = self._line_starts[statement.lineno - 1]
        decorators = getattr(statement, "decorator_list", [])
        if decorators:
            start = self._line_starts[decorators[0].lineno - 1]
        indent = self.text[self._line_starts[statement.lineno - 1] : self.start(statement)]
        return Edit(start, start, f"{indent}{text}\n")

    def insert_after(self, statement: ast.stmt, text: str) -> Edit:
        """A new statement of one line goes behind one, on the same level."""
        indent = self.text[self._line_starts[statement.lineno - 1] : self.start(statement)]
        return Edit(self.end(statement), self.end(statement), f"\n{indent}{text}")

    def swap(self, one: ast.stmt, other: ast.stmt) -> tuple[Edit, Edit]:
        """Two statements of one block change places."""
        return self.replace(one, self.source(other)), self.replace(other, self.source(one))

    def without_argument(self, call: ast.Call, name: str) -> Edit | None:
        """The call without a keyword argument; None if it has none of that name."""
        for number, keyword in enumerate(call.keywords):
            if keyword.arg != name:
                continue
            before = [*call.args, *(item.value for item in call.keywords[:number])]
            start = self.end(before[-1]) if before else self.end(call.func) + 1
            end = self.end(keyword.value)
            if not before and number + 1 < len(call.keywords):
                end = self._offset(
                    call.keywords[number + 1].lineno, call.keywords[number + 1].col_offset
                )
            return Edit(start, end, "")
        return None

    def with_argument(self, call: ast.Call, text: str) -> Edit:
        """The call with one more keyword argument at its end."""
        given = [*call.args, *(item.value for item in call.keywords)]
        end = self.end(given[-1]) if given else self.end(call.func) + 1
        return Edit(end, end, f", {text}" if given else text)

    def edited(self, edits: Sequence[Edit]) -> str:
        """The text after all edits."""
        text = self.text
        for edit in sorted(edits, key=lambda item: (item.start, item.end), reverse=True):
            text = text[: edit.start] + edit.text + text[edit.end :]
        return text


def called_name(call: ast.Call) -> str | None:
    """The last name of what is called."""
    name: str | None = getattr(call.func, "attr", getattr(call.func, "id", None))
    return name


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((item.value for item in call.keywords if item.arg == name), None)
