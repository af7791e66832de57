"""Calling a module or a loss: the forward pass, and the tensor that comes out."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from trainlint.analysis.interpreter.machine import Machine
from trainlint.analysis.knowledge import losses, tensors
from trainlint.analysis.roles import Role, has_role, loss_kind, role, unwrapped
from trainlint.analysis.trace import EventKind
from trainlint.analysis.values import (
    Choice,
    Constant,
    FunctionValue,
    Group,
    Instance,
    Object,
    Parameters,
    Tensor,
    Unknown,
    Value,
    choice,
    elements,
)

_ZOO_HEADS = ("fc", "classifier", "head", "heads")


def call_module(
    machine: Machine,
    module: Value,
    arguments: list[Value],
    keywords: dict[str, Value],
    node: ast.Call,
) -> Value:
    """``module(...)`` for a value that is, or looks like, a module or a loss function."""
    everything = [*arguments, *keywords.values()]
    inner = unwrapped(module)
    if isinstance(inner, Object) and inner.dotted in losses.LOSS_MODULES:
        return apply_loss(machine, module, arguments, keywords, node)
    if has_role(module, Role.LOSS_FUNCTION) and not isinstance(inner, (Instance, Object)):
        machine.emit(EventKind.OPAQUE, node, module, tuple(everything))
        return loss_value(everything)
    _, certain = role(module)
    machine.emit(EventKind.FORWARD, node, module, tuple(everything), certain)
    result = _result(machine, inner, arguments, keywords, node)
    if has_role(module, Role.LOSS_FUNCTION):
        return loss_value([*everything, result])
    return as_output(module, result, everything, has_graph=machine.graphless_since is None)


def apply_loss(
    machine: Machine,
    function: Value,
    arguments: list[Value],
    keywords: dict[str, Value],
    node: ast.Call,
) -> Value:
    """A call of one of torch's losses; the event holds input and target."""
    kind = loss_kind(function)
    position, input_name, target_name = 1, "input", "target"
    if kind is not None:
        position, input_name, target_name = kind.target_position, kind.input_name, kind.target_name
    first = arguments[0] if arguments else keywords.get(input_name, Unknown())
    target = (
        arguments[position] if len(arguments) > position else keywords.get(target_name, Unknown())
    )
    machine.emit(EventKind.LOSS, node, function, (first, target))
    return loss_value([*arguments[:position], first, target])


def loss_value(ingredients: list[Value]) -> Tensor:
    """A loss computed from some values."""
    found = [item for value in ingredients for item in elements(value) if isinstance(item, Tensor)]
    return Tensor(
        origins=frozenset().union(*(tensor.origins for tensor in found)),
        modules=frozenset().union(*(tensor.trains for tensor in found)),
        is_loss=True,
    )


def as_output(
    module: Value, result: Value, arguments: list[Value], *, has_graph: bool = True
) -> Value:
    """What a module returned, marked as having passed through it."""
    if isinstance(result, Choice):
        return choice(
            as_output(module, option, arguments, has_graph=has_graph) for option in result.options
        )
    if isinstance(result, Group):
        marked = [
            as_output(module, element, arguments, has_graph=has_graph)
            for element in result.elements
        ]
        keys = list(result.keys) if result.keys is not None else None
        return Group(marked, keys=keys, open=result.open)
    if isinstance(result, Parameters):
        return result
    inputs = [item for value in arguments for item in elements(value) if isinstance(item, Tensor)]
    own = result if isinstance(result, Tensor) else Tensor()
    return Tensor(
        origins=own.origins.union({"model"}, *(tensor.origins for tensor in inputs)),
        modules=own.trains.union({module}, *(tensor.trains for tensor in inputs)),
        activation=own.activation,
        activated_at=own.activated_at,
        is_loss=own.is_loss,
        detached=not has_graph or (own.detached and isinstance(result, Tensor)),
    )


def _result(
    machine: Machine,
    module: Value,
    arguments: list[Value],
    keywords: dict[str, Value],
    node: ast.Call,
) -> Value:
    if isinstance(module, Instance):
        return _run_forward(machine, module, arguments, keywords, node)
    if isinstance(module, Object):
        return _library_result(machine, module, arguments, node)
    if isinstance(module, Choice):
        return choice(
            _result(machine, unwrapped(item), arguments, keywords, node) for item in module.options
        )
    return Unknown()


def _library_result(
    machine: Machine, module: Object, arguments: list[Value], node: ast.Call
) -> Value:
    activation = tensors.ACTIVATION_MODULES.get(module.dotted)
    if activation is not None:
        return Tensor(activation=activation, activated_at=module.node)
    if module.dotted == "torch.nn.Sequential" and module.arguments:
        last = unwrapped(_last_layer(module))
        if isinstance(last, (Instance, Object, Choice)):
            return _result(machine, last, arguments, {}, node)
    head = _replaced_head(module)
    if head is not None:
        return _result(machine, unwrapped(head), arguments, {}, node)
    if (
        module.dotted in ("torch.nn.Identity", "torch.nn.Flatten", "torch.nn.Unflatten")
        and arguments
    ):
        return arguments[0] if isinstance(arguments[0], Tensor) else Unknown()
    return Unknown()


def _replaced_head(module: Object) -> Value | None:
    """The layer that was put in place of the last one of a torchvision classifier."""
    if not module.dotted.startswith("torchvision.models."):
        return None
    if any(word in module.dotted for word in ("inception", "googlenet", "detection")):
        return None
    return next((module.members[name] for name in _ZOO_HEADS if name in module.members), None)


def _last_layer(sequential: Object) -> Value:
    """The last layer of ``nn.Sequential``; unknown where layers may follow that are not listed."""
    last = sequential.arguments[-1]
    if isinstance(last, Object) and last.dotted == "collections.OrderedDict" and last.arguments:
        pairs = last.arguments[0]
        is_listed = isinstance(pairs, Group) and pairs.elements and pairs.last_is_sure
        pair = pairs.elements[-1] if is_listed and isinstance(pairs, Group) else None
        return (
            pair.elements[1] if isinstance(pair, Group) and len(pair.elements) == 2 else Unknown()
        )
    return last


def _run_forward(
    machine: Machine,
    module: Instance,
    arguments: list[Value],
    keywords: dict[str, Value],
    node: ast.Call,
) -> Value:
    """The forward method runs in place once for each object; later calls repeat its result."""
    from trainlint.analysis.interpreter.calls import run_function

    method = module.definition.method("forward")
    if method is None:
        return _run_inherited_sequence(machine, module, arguments, node)
    key = (_same_behaviour(module), _constants(arguments), _constants(keywords.values()), *keywords)
    if key not in machine.forward_results:
        bound = FunctionValue(method, module, machine.module_environment(method.file))
        machine.forward_results[key] = Unknown()
        machine.forward_results[key] = run_function(machine, bound, arguments, keywords, node)
    return machine.forward_results[key]


def _run_inherited_sequence(
    machine: Machine, module: Instance, arguments: list[Value], node: ast.Call
) -> Value:
    """A class that is an ``nn.Sequential`` of the layers that its constructor hands upwards."""
    layers = module.layers
    is_sequence = "torch.nn.Sequential" in module.definition.external_bases()
    if not (is_sequence and layers):
        return Unknown()
    return _result(machine, unwrapped(layers[-1]), arguments, {}, node)


def _same_behaviour(module: Instance) -> object:
    """Nameless layers of a class that were made with the same constants behave the same."""
    return module if module.hint else (module.definition, _constants(module.arguments))


def _constants(values: Iterable[Value]) -> tuple[object, ...]:
    """The constants among some values, in their places."""
    return tuple(repr(item.value) if isinstance(item, Constant) else None for item in values)
