"""Modules where they are made: which call makes one, and whether it holds anything to train."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from trainlint.analysis.knowledge import modules
from trainlint.analysis.receivers import unchained
from trainlint.analysis.roles import Role, of_library_class

if TYPE_CHECKING:
    from trainlint.analysis.definitions import ClassDefinition
    from trainlint.analysis.file_model import FileModel

_TENSORS = frozenset({"torch.nn.Parameter", "torch.nn.Buffer"})
_REGISTERS = frozenset({"register_buffer", "register_parameter"})


def makes_module(file: FileModel, value: ast.expr) -> bool:
    """Whether an expression certainly makes a new ``nn.Module``, or a loss that is one."""
    made = unchained(value)
    if not isinstance(made, ast.Call):
        return False
    dotted = file.qualified(made.func)
    if dotted is not None and modules.is_torch_module(dotted):
        return True
    definition = file.resolve_class(made.func)
    return definition is not None and definition.is_module


def holds_tensors(file: FileModel, value: ast.expr) -> bool:
    """Whether a module that ``value`` makes certainly has parameters or buffers.

    It has if it is one of torch's layers that do, a container of such, or of a class of the project
    whose methods make such parts or parameters.
    """
    made = unchained(value)
    return isinstance(made, ast.Call) and _makes_tensors(file, made, frozenset())


def depends_on_mode(file: FileModel, value: ast.expr) -> bool:
    """Whether a module made without any tensors still needs ``train()`` and ``eval()``."""
    return any(
        isinstance(node, ast.Call)
        and (dotted := file.qualified(node.func)) is not None
        and dotted.rpartition(".")[2] in modules.MODE_SENSITIVE
        for node in ast.walk(value)
    )


def _makes_tensors(file: FileModel, call: ast.Call, seen: frozenset[ClassDefinition]) -> bool:
    dotted = file.qualified(call.func)
    if dotted in _TENSORS:
        return True
    if dotted is not None and modules.is_torch_module(dotted):
        name = dotted.rpartition(".")[2]
        if name in modules.CONTAINERS:
            parts = [
                node for part in call.args for node in ast.walk(part) if isinstance(node, ast.Call)
            ]
            return any(_makes_tensors(file, part, seen) for part in parts)
        return (
            name not in modules.PARAMETERLESS and of_library_class(dotted) is not Role.LOSS_FUNCTION
        )
    definition = file.resolve_class(call.func)
    return (
        definition is not None and definition.is_module and _class_makes_tensors(definition, seen)
    )


def _class_makes_tensors(definition: ClassDefinition, seen: frozenset[ClassDefinition]) -> bool:
    if definition in seen:
        return False
    return any(
        _is_registration(call) or _makes_tensors(ancestor.file, call, seen | {definition})
        for ancestor in definition.ancestors()
        for call in ancestor.file.index.nodes_in(ancestor.node, ast.Call)
    ) or any(name is not None and _is_layer(name) for name in definition.external_bases())


def _is_layer(dotted: str) -> bool:
    """Whether a base class of torch is a layer with weights: ``class Conv(nn.Conv2d)``."""
    head, _, name = dotted.rpartition(".")
    weightless = modules.PARAMETERLESS | modules.CONTAINERS | modules.NOT_MODULES
    return head == "torch.nn" and name not in weightless and not name.endswith("Loss")


def _is_registration(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _REGISTERS
