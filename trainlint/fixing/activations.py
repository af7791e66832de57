"""Repairs of what goes into a loss: a softmax too many, or one that should be a log-softmax."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from trainlint.analysis.file_model import FileModel
from trainlint.analysis.knowledge import tensors
from trainlint.analysis.loss_calls import SquashedInput
from trainlint.finding import Applicability
from trainlint.rule import Repair

if TYPE_CHECKING:
    from trainlint.fixing.editor import Editor


def without_activation(found: SquashedInput, file: FileModel) -> Repair | None:
    """Takes the activation away: safe in the loss's own argument, unsafe anywhere else."""
    activation = found.activation
    if activation.file is not file or not isinstance(activation.node, ast.Call):
        return None
    node, title = activation.node, f"Remove the {activation.name}"
    argument = _argument_that_is(found, node)
    if argument is not None:
        return _unwrapping(argument, _activated(argument, file), title, Applicability.SAFE)
    inner = _activated(node, file)
    if inner is not None:
        return _unwrapping(node, inner, title, Applicability.UNSAFE)
    if _is_layer(node):
        return Repair(title, Applicability.UNSAFE, lambda editor: _become_identity(editor, node))
    return None


def _unwrapping(
    whole: ast.expr, part: ast.expr | None, title: str, applicability: Applicability
) -> Repair | None:
    if part is None:
        return None
    return Repair(title, applicability, lambda editor: editor.replace_with_node(whole, part))


def in_log_space(found: SquashedInput, file: FileModel) -> Repair | None:
    """Makes a softmax a log-softmax: safe in the loss's own argument, unsafe anywhere else."""
    activation = found.activation
    node = activation.node
    if (
        activation.file is not file
        or activation.name != "softmax"
        or not isinstance(node, ast.Call)
    ):
        return None
    if not isinstance(node.func, ast.Attribute):
        return None
    name = {"softmax": "log_softmax", "Softmax": "LogSoftmax"}.get(node.func.attr)
    if name is None:
        return None
    is_argument = _argument_that_is(found, node) is not None
    return Repair(
        f"Use {name}",
        Applicability.SAFE if is_argument else Applicability.UNSAFE,
        lambda editor: editor.rename_function(node, name),
    )


def _argument_that_is(found: SquashedInput, node: ast.Call) -> ast.Call | None:
    """The loss's input expression, where that is the activation itself, or its call."""
    call = found.call.node
    given = (
        call.args[0]
        if call.args
        else next((item.value for item in call.keywords if item.arg == "input"), None)
    )
    if isinstance(given, ast.Call) and (given is node or given.func is node):
        return given
    return None


def _activated(node: ast.Call, file: FileModel) -> ast.expr | None:
    """``z`` of ``softmax(z, 1)``, ``z.softmax(1)`` and ``nn.Softmax(1)(z)``."""
    function = node.func
    if file.qualified(function) in tensors.ACTIVATION_FUNCTIONS or isinstance(function, ast.Call):
        return _first_argument(node)
    is_method = isinstance(function, ast.Attribute) and function.attr in tensors.ACTIVATION_METHODS
    return function.value if is_method and isinstance(function, ast.Attribute) else None


def _first_argument(node: ast.Call) -> ast.expr | None:
    if node.args and not isinstance(node.args[0], ast.Starred):
        return node.args[0]
    return next((item.value for item in node.keywords if item.arg == "input"), None)


def _is_layer(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr[:1].isupper()


def _become_identity(editor: Editor, node: ast.Call) -> None:
    assert isinstance(node.func, ast.Attribute)
    editor.replace(node, f"{editor.source(node.func.value)}.Identity()")
