"""What a network is made of, as far as its constructor shows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis.knowledge import modules
from trainlint.analysis.roles import unwrapped
from trainlint.analysis.values import (
    Choice,
    Constant,
    FunctionValue,
    Group,
    Instance,
    LambdaValue,
    Object,
    Parameters,
    Tensor,
    Value,
)

if TYPE_CHECKING:
    from trainlint.analysis.definitions import ClassDefinition

_METHODS = frozenset({"register_buffer", "eval", "requires_grad_", "to"})
_MAX_PARTS = 600
_NEVER_LAYERS = (Constant, Parameters, Tensor, FunctionValue, LambdaValue)
_MODEL_ZOOS = ("torchvision.models.", "timm.", "segmentation_models_pytorch.", "transformers.")


def layers(module: Value) -> Iterator[Value]:
    """Everything found inside a module: torch's layers, modules of the project, unknown parts.

    The module itself comes first. Members that cannot be layers are left out.
    """
    seen: set[Value] = set()
    pending: list[Value] = [module]
    while pending and len(seen) < _MAX_PARTS:
        value = unwrapped(pending.pop())
        if value in seen or isinstance(value, _NEVER_LAYERS):
            continue
        seen.add(value)
        if isinstance(value, Choice):
            pending.extend(value.options)
        elif isinstance(value, Group):
            pending.extend(value.elements)
        else:
            yield value
            pending.extend(_inside(value))


def is_mode_sensitive(module: Value) -> bool | None:
    """Whether train and eval mode differ for a module; None where its inside is not visible."""
    unknown = False
    for layer in layers(module):
        if isinstance(layer, Object):
            found = _layer_is_sensitive(layer)
            if found:
                return True
            unknown = unknown or found is None
        elif isinstance(layer, Instance):
            unknown = unknown or layer.definition.has_unknown_base()
            if _uses_training_flag(layer):
                return True
        else:
            unknown = True
    return None if unknown else False


def is_parameterless(module: Value) -> bool:
    """Whether a module certainly has no weights: dropout, softmax, a transform with buffers."""
    inner = unwrapped(module)
    if isinstance(inner, Instance):
        return _has_only_buffers(inner.definition)
    if not isinstance(inner, Object):
        return False
    head, _, name = inner.dotted.rpartition(".")
    return head == "torch.nn" and name in modules.PARAMETERLESS


def _has_only_buffers(definition: ClassDefinition) -> bool:
    """A class of its own that registers buffers, makes no parameter and calls no layer."""
    file = definition.file
    if list(definition.external_bases()) != ["torch.nn.Module"] or definition.bases:
        return False
    called = {
        node.func.attr
        for node in file.index.nodes_in(definition.node, ast.Call)
        if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "self"
    }
    are_methods = called <= _METHODS | definition.own_methods.keys()
    has_parameter = "Parameter(" in file.segment(definition.node)
    return "register_buffer" in called and are_methods and not has_parameter


def _inside(value: Value) -> list[Value]:
    if isinstance(value, Instance):
        held = [member for name, member in value.members.items() if not name.startswith("__")]
        return [*held, *value.layers]
    if isinstance(value, Object) and value.dotted.rpartition(".")[2] in modules.CONTAINERS:
        return [*value.arguments, *value.keywords.values()]
    if isinstance(value, Object) and value.copy_of is not None:
        return [value.copy_of]
    return []


def _layer_is_sensitive(layer: Object) -> bool | None:
    head, _, name = layer.dotted.rpartition(".")
    if layer.copy_of is not None or layer.dotted.startswith("builtins."):
        return False
    if layer.dotted.startswith(_MODEL_ZOOS):
        return True
    if head != "torch.nn":
        return False if layer.dotted.startswith("torch.") else None
    if name in modules.WITH_DROPOUT_ARGUMENT:
        dropout = layer.keywords.get("dropout")
        return not (dropout is None or (isinstance(dropout, Constant) and not dropout.value))
    return name in modules.MODE_SENSITIVE


def _uses_training_flag(layer: Instance) -> bool:
    """``self.training`` in a method: functional dropout, or behaviour of the module's own."""
    return any(
        "self.training" in method.file.segment(method.node)
        for ancestor in layer.definition.ancestors()
        for method in ancestor.own_methods.values()
    )
