"""Expressions that are true or false, whatever else they may be used as."""

from __future__ import annotations

import ast

from trainlint.analysis.file_model import FileModel
from trainlint.analysis.receivers import assigned_at, assigned_values

_MAX_DEPTH = 3


def is_flag(file: FileModel, node: ast.expr, depth: int = 0) -> bool:
    """Whether an expression certainly is a truth value, as far as the file shows.

    So is a parameter that is annotated as one or has one for its default.
    """
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool)
    if isinstance(node, (ast.Compare, ast.BoolOp)):
        return True
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    if isinstance(node, ast.Call):
        return file.qualified(node.func) in ("builtins.bool", "builtins.isinstance")
    if depth > _MAX_DEPTH:
        return False
    if isinstance(node, ast.Name):
        bound = file.index.bindings(node.id, file.index.scope(node))
        return bool(bound) and all(_binds_flag(file, item, depth) for item in bound)
    values = list(assigned_values(file, node))
    return bool(values) and all(is_flag(file, value, depth + 1) for value in values)


def _binds_flag(file: FileModel, bound: ast.AST, depth: int) -> bool:
    if isinstance(bound, ast.arg):
        default = _default(file, bound)
        is_annotated = isinstance(bound.annotation, ast.Name) and bound.annotation.id == "bool"
        return is_annotated or (default is not None and is_flag(file, default, depth + 1))
    value = assigned_at(file, bound)
    return value is not None and is_flag(file, value, depth + 1)


def _default(file: FileModel, parameter: ast.arg) -> ast.expr | None:
    arguments = file.index.parents.get(parameter)
    if not isinstance(arguments, ast.arguments):
        return None
    positional = [*arguments.posonlyargs, *arguments.args]
    if parameter in positional:
        place = positional.index(parameter) - len(positional)
        return arguments.defaults[place] if -place <= len(arguments.defaults) else None
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return next((default for item, default in pairs if item is parameter), None)
