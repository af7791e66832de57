"""Applies one repair, written as a function, to a piece of source."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterator
from typing import TypeVar

from trainlint.finding import Applicability, Severity
from trainlint.fixing import FixResult, fix_source
from trainlint.fixing.editor import Editor
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import text

Node = TypeVar("Node", bound=ast.AST)
RepairOfTree = Callable[[Editor, ast.Module], None]


class ExampleRule(Rule):
    """Stands for any rule."""

    code = "TL000"
    scout = text("")
    severity = Severity.ERROR
    help = "no help"

    def check(self, file: object) -> Iterator[Report]:
        """Yield nothing: the tests write the reports themselves."""
        yield from ()


def report_of(
    text: str, repair: RepairOfTree, applicability: Applicability = Applicability.SAFE
) -> Report:
    """A report on ``text`` whose repair receives the editor and the tree."""
    tree = ast.parse(text)
    how = Repair("Repair it", applicability, lambda editor: repair(editor, tree))
    return Report(ExampleRule(), tree, "message", "help", ExampleRule.severity, how)


def fixed(text: str, *repairs: RepairOfTree) -> FixResult:
    """The result of one round of these repairs."""
    return fix_source(text, [report_of(text, repair) for repair in repairs], unsafe=False)


def repaired(text: str, *repairs: RepairOfTree) -> str:
    """The text after one round in which every repair was applied."""
    result = fixed(text, *repairs)
    assert len(result.applied) == len(repairs)
    return result.text


def source(text: str) -> str:
    """A triple-quoted example without its indentation and first line break."""
    return textwrap.dedent(text).removeprefix("\n")


def nodes(tree: ast.AST, kind: type[Node]) -> list[Node]:
    """All nodes of a kind in the order of the text."""
    found = [node for node in ast.walk(tree) if isinstance(node, kind)]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))  # type: ignore[attr-defined]


def call_of(tree: ast.AST, function: str) -> ast.Call:
    """The first call whose function ends with this name."""
    for call in nodes(tree, ast.Call):
        if ast.unparse(call.func).split(".")[-1] == function:
            return call
    raise AssertionError(f"no call of {function}")


def statement_of(tree: ast.AST, code: str) -> ast.stmt:
    """The first statement whose normalized text begins with ``code``."""
    for statement in nodes(tree, ast.stmt):
        if ast.unparse(statement).startswith(code):
            return statement
    raise AssertionError(f"no statement {code}")
