"""Expressions that no gradient passes through: argmax, round, comparisons, one-hot codes."""

from __future__ import annotations

import ast

from trainlint.analysis.file_model import FileModel

_HARD_METHODS = frozenset(
    {
        "argmax", "argmin", "argsort", "round", "floor", "ceil", "sign", "gt", "ge", "lt", "le",
        "bernoulli", "multinomial",
    }
)  # fmt: skip
_HARD_FUNCTIONS = frozenset(
    {f"torch.{name}" for name in _HARD_METHODS} | {"torch.nn.functional.one_hot"}
)
_PASSES_ON = frozenset(
    {
        "float", "double", "half", "long", "int", "bool", "to", "type", "type_as", "view", "t",
        "squeeze", "unsqueeze", "flatten", "permute", "transpose", "contiguous", "cuda", "cpu",
        "clone", "requires_grad_", "expand", "expand_as", "repeat", "reshape",
    }
)  # fmt: skip
_PICKS = frozenset({"max", "min", "topk", "sort", "kthvalue", "mode", "median"})
_MAX_NAMES = 6


def hard_choice(file: FileModel, expression: ast.expr, depth: int = 0) -> ast.expr | None:
    """The part of an expression that cuts every path to what it is made from; None if none does."""
    if depth > _MAX_NAMES:
        return None
    if isinstance(expression, ast.Compare):
        sides = [expression.left, *expression.comparators]
        is_hard = any(hard_choice(file, side, depth + 1) is not None for side in sides)
        return expression if is_hard or _compares_numbers(expression) else None
    if isinstance(expression, ast.Call):
        return _of_call(file, expression, depth)
    if isinstance(expression, ast.Subscript):
        index = expression.slice
        is_second = isinstance(index, ast.Constant) and index.value == 1
        if is_second and _picks_along(file, expression.value):
            return expression
        return hard_choice(file, expression.value, depth + 1)
    if isinstance(expression, ast.Attribute) and expression.attr == "indices":
        return expression if _picks_along(file, expression.value) else None
    if isinstance(expression, ast.Name):
        return _of_name(file, expression, depth)
    return None


def _of_call(file: FileModel, call: ast.Call, depth: int) -> ast.expr | None:
    if file.qualified(call.func) in _HARD_FUNCTIONS:
        return call
    if not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr in _HARD_METHODS and file.qualified(call.func) is None:
        return call
    is_method = file.qualified(call.func) is None and call.func.attr in _PASSES_ON
    return hard_choice(file, call.func.value, depth + 1) if is_method else None


def _of_name(file: FileModel, name: ast.Name, depth: int) -> ast.expr | None:
    """What the last assignment above the use, in the same function, makes of the name."""
    scope = file.index.scope(name)
    bound = [
        item
        for item in file.index.bindings(name.id, scope)
        if isinstance(item, ast.Name) and item.lineno < name.lineno
    ]
    others = [
        item for item in file.index.bindings(name.id, scope) if not isinstance(item, ast.Name)
    ]
    if not bound or others or file.index.scope(bound[-1]) is not scope:
        return None
    last = max(bound, key=lambda item: item.lineno)
    if file.index.statement(last) not in _blocks_around(file, name):
        return None
    parent = file.index.parents.get(last)
    if isinstance(parent, ast.Assign) and last in parent.targets:
        return hard_choice(file, parent.value, depth + 1)
    statement = file.index.statement(last)
    is_second = isinstance(parent, ast.Tuple) and len(parent.elts) == 2 and parent.elts[1] is last
    if is_second and isinstance(statement, ast.Assign) and _picks_along(file, statement.value):
        return statement.value
    return None


def _blocks_around(file: FileModel, node: ast.AST) -> set[ast.AST]:
    """The statements of all blocks that a node stands in: those above it surely ran."""
    found: set[ast.AST] = set()
    current: ast.AST | None = file.index.statement(node)
    while current is not None:
        parent = file.index.parents.get(current)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(parent, field, None)
            if isinstance(block, list) and current in block:
                found.update(block)
        current = parent
    return found


def _picks_along(file: FileModel, node: ast.expr) -> bool:
    """``x.max(1)``, ``torch.topk(x, k)``: values and indices."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    dotted = file.qualified(node.func)
    count = len(node.args) + len(node.keywords) - (dotted is not None)
    is_torch = dotted is None or dotted.startswith("torch.")
    return is_torch and node.func.attr in _PICKS and count >= 1


def _compares_numbers(node: ast.Compare) -> bool:
    return len(node.ops) == 1 and isinstance(node.ops[0], (ast.Gt, ast.GtE, ast.Lt, ast.LtE))
