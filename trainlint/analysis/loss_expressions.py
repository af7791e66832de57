"""The expression that a backward pass starts from, out of what is wrapped around it."""

from __future__ import annotations

import ast

from trainlint.analysis.index import Function
from trainlint.analysis.roles import Role, has_role
from trainlint.analysis.trace import Event


def loss_expression(backward: Event) -> ast.expr | None:
    """``loss`` of ``loss.backward()``, ``scale(loss).backward()`` and ``engine.backward(loss)``."""
    call = backward.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    found = call.func.value
    if has_role(backward.target, Role.TENSOR) and call.args and not is_plain_backward(backward):
        found = call.args[0]
    if not isinstance(found, ast.Call) or not isinstance(found.func, ast.Attribute):
        return found
    return found.args[0] if found.func.attr == "scale" and found.args else found


def is_plain_backward(backward: Event) -> bool:
    """Whether ``backward`` is a method of the loss, and not of an engine that takes it."""
    call = backward.node
    assert isinstance(call, ast.Call)
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "backward"):
        return False
    name = ast.unparse(call.func.value).lower()
    return not call.args or not any(word in name for word in ("accelerator", "fabric", "engine"))


def differentiated_names(scope: Function | ast.Module) -> set[str]:
    """The totals that a backward pass may start from, directly or through what is made of them."""
    found = {
        ast.unparse(part)
        for node in ast.walk(scope)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("backward", "manual_backward", "grad", "scale")
        for root in (node.func.value, *node.args)
        for part in ast.walk(root)
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript))
    }
    for _ in range(3):
        for node in ast.walk(scope):
            if isinstance(node, ast.Assign) and any(
                ast.unparse(item) in found for item in node.targets
            ):
                found |= {
                    ast.unparse(part)
                    for part in ast.walk(node.value)
                    if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript))
                }
    return found
