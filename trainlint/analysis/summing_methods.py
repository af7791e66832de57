"""Methods of meters: which add what they are given, graph and all, to what their object holds."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from trainlint.analysis.receivers import assigned_values

if TYPE_CHECKING:
    from trainlint.analysis.definitions import FunctionDefinition
    from trainlint.analysis.file_model import FileModel

_CUTS = frozenset(
    {"item", "detach", "detach_", "data", "numpy", "tolist", "no_grad", "inference_mode", "float"}
)
_KEEP_GRAPH = frozenset({"cpu", "cuda", "to", "mean", "sum", "clone", "squeeze", "view"})


def adds_up(file: FileModel, call: ast.Call) -> bool:
    """Whether a method of the project's own class adds its first argument to what it holds."""
    if not isinstance(call.func, ast.Attribute) or not call.args:
        return False
    made = list(assigned_values(file, call.func.value))
    classes = [
        file.resolve_class(value.func) if isinstance(value, ast.Call) else None for value in made
    ]
    methods = [item.method(call.func.attr) if item is not None else None for item in classes]
    return bool(methods) and all(method is not None and _sums(method) for method in methods)


def _sums(method: FunctionDefinition) -> bool:
    names = [argument.arg for argument in method.node.args.args[1:2]]
    if not names or any(_cuts(node, names[0]) for node in ast.walk(method.node)):
        return False
    return any(_adds(node, names[0]) for node in ast.walk(method.node))


def _cuts(node: ast.AST, name: str) -> bool:
    """Whether the method makes a number of something, or gives the name to something else."""
    if isinstance(node, ast.Attribute):
        return node.attr in _CUTS
    if isinstance(node, ast.Name):
        return node.id in _CUTS or (node.id == name and isinstance(node.ctx, ast.Store))
    return False


def _adds(node: ast.AST, name: str) -> bool:
    """``self.sum += value * n``, ``self.sum = self.sum + value`` or ``self.all.append(value)``."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add) and _is_own(node.target) and _has(node.value, name)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
        total, added = node.targets[0], node.value
        is_sum = isinstance(added.op, ast.Add) and ast.dump(added.left) != ast.dump(added.right)
        is_same = ast.unparse(added.left) == ast.unparse(total)
        return is_sum and is_same and _is_own(total) and _has(added.right, name)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        is_append = node.func.attr == "append" and _is_own(node.func.value)
        return is_append and _has(node.args[0], name)
    return False


def _is_own(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self"


def _has(value: ast.expr, name: str) -> bool:
    """The argument itself, a multiple of it, or what keeps its graph."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div)):
        return _has(value.left, name) or (
            isinstance(value.op, ast.Mult) and _has(value.right, name)
        )
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return value.func.attr in _KEEP_GRAPH and _has(value.func.value, name)
    return isinstance(value, ast.Name) and value.id == name
