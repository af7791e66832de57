"""Statements that stand in one block, one after the other."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_FIELDS = ("body", "orelse", "finalbody", "handlers")


def block_of(file: FileModel, statement: ast.stmt) -> list[ast.stmt]:
    """The block that a statement is a member of."""
    parent = file.index.parents[statement]
    for field in _FIELDS:
        block = getattr(parent, field, None)
        if isinstance(block, list) and statement in block:
            return block
    return [statement]


def loop_around(file: FileModel, node: ast.AST) -> ast.For | ast.AsyncFor | ast.While | None:
    """The innermost loop of the same function that a node lies in."""
    child, parent = node, file.index.parents.get(node)
    while parent is not None and not isinstance(parent, _FUNCTIONS):
        if isinstance(parent, _LOOPS) and child in parent.body:
            return parent
        child, parent = parent, file.index.parents.get(parent)
    return None


def neighbours(
    file: FileModel, first: ast.AST, second: ast.AST
) -> tuple[ast.stmt, ast.stmt] | None:
    """The simple statements that two expressions stand in, if they are members of one block."""
    if first not in file.index.parents or second not in file.index.parents:
        return None
    one, other = file.index.statement(first), file.index.statement(second)
    return (one, other) if other in block_of(file, one) else None


def follows_around(file: FileModel, first: ast.AST, second: ast.AST) -> bool:
    """Whether ``second`` stands in the block of ``first``, or in one around it, further down."""
    if first not in file.index.parents or second not in file.index.parents:
        return False
    other = file.index.statement(second)
    current: ast.AST | None = file.index.statement(first)
    while isinstance(current, (ast.stmt, ast.ExceptHandler)):
        if isinstance(current, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return False
        if isinstance(current, ast.stmt):
            block = block_of(file, current)
            if other in block:
                return block.index(other) > block.index(current)
        current = file.index.parents.get(current)
    return False


def runs_before(file: FileModel, first: ast.AST, second: ast.AST) -> bool:
    """Whether ``first`` comes before ``second`` in one function, and not in another branch.

    Either may be deeper in than the block that both share; loops are not gone around.
    """
    if file.index.enclosing_function(first) is not file.index.enclosing_function(second):
        return False
    if first not in file.index.parents or second not in file.index.parents:
        return False
    above = dict.fromkeys(_statements_above(file, first))
    for other in _statements_above(file, second):
        block = block_of(file, other)
        one = next((statement for statement in above if statement in block), None)
        if one is not None:
            return block.index(one) < block.index(other)
    return False


def _statements_above(file: FileModel, node: ast.AST) -> list[ast.stmt]:
    """The statement that holds a node and the compound statements around it, innermost first."""
    found: list[ast.stmt] = []
    current: ast.AST | None = file.index.statement(node)
    while isinstance(current, (ast.stmt, ast.ExceptHandler)):
        if isinstance(current, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            break
        if isinstance(current, ast.stmt):
            found.append(current)
        current = file.index.parents.get(current)
    return found
