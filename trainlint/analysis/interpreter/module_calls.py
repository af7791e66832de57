"""Calling a module or a loss: the forward pass, and the tensor that comes out."""

from __future__ import annotations

import ast

from trainlint.analysis.interpreter.machine import Machine
from trainlint.analysis.knowledge import losses, tensors
from trainlint.analysis.roles import Role, has_role, role, unwrapped
from trainlint.analysis.trace import EventKind
from trainlint.analysis.values import (
    Choice,
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
    return as_output(module, result, everything)


def apply_loss(
    machine: Machine,
    function: Value,
    arguments: list[Value],
    keywords: dict[str, Value],
    node: ast.Call,
) -> Value:
    """A call of one of torch's losses; the event holds input and target."""
    target_names = ("target", "targets")
    given = dict(keywords)
    first = arguments[0] if arguments else given.get("input", given.get("inputs", Unknown()))
    second: Value = Unknown()
    if len(arguments) > 1:
        second = arguments[1]
    else:
        second = next((given[name] for name in target_names if name in given), second)
    machine.emit(EventKind.LOSS, node, function, (first, second))
    return loss_value([first, second])


def loss_value(ingredients: list[Value]) -> Tensor:
    """A loss computed from some values."""
    found = [item for value in ingredients for item in elements(value) if isinstance(item, Tensor)]
    return Tensor(
        origins=frozenset().union(*(tensor.origins for tensor in found)),
        modules=frozenset().union(*(tensor.modules for tensor in found)),
        is_loss=True,
    )


def as_output(module: Value, result: Value, arguments: list[Value]) -> Value:
    """What a module returned, marked as having passed through it."""
    if isinstance(result, Choice):
        return choice(as_output(module, option, arguments) for option in result.options)
    if isinstance(result, Group):
        marked = [as_output(module, element, arguments) for element in result.elements]
        return Group(marked, keys=result.keys, open=result.open)
    if isinstance(result, Parameters):
        return result
    inputs = [item for value in arguments for item in elements(value) if isinstance(item, Tensor)]
    own = result if isinstance(result, Tensor) else Tensor()
    return Tensor(
        origins=own.origins.union({"model"}, *(tensor.origins for tensor in inputs)),
        modules=own.modules.union({module}, *(tensor.modules for tensor in inputs)),
        activation=own.activation,
        activated_at=own.activated_at,
        is_loss=own.is_loss,
        detached=own.detached and isinstance(result, Tensor),
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
        return choice(_result(machine, unwrapped(item), arguments, keywords, node) for item in module.options)
    return Unknown()


def _library_result(
    machine: Machine, module: Object, arguments: list[Value], node: ast.Call
) -> Value:
    activation = tensors.ACTIVATION_MODULES.get(module.dotted)
    if activation is not None:
        return Tensor(activation=activation, activated_at=module.node)
    if module.dotted == "torch.nn.Sequential" and module.arguments:
        last = unwrapped(module.arguments[-1])
        if isinstance(last, (Instance, Object)):
            return _result(machine, last, arguments, {}, node)
    if module.dotted in ("torch.nn.Identity", "torch.nn.Flatten", "torch.nn.Unflatten") and arguments:
        return arguments[0] if isinstance(arguments[0], Tensor) else Unknown()
    return Unknown()


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
        return Unknown()
    key = (module.definition if module.hint == "" else module, len(arguments))
    if key not in machine.forward_results:
        bound = FunctionValue(method, module, machine.module_environment(method.file))
        machine.forward_results[key] = Unknown()
        machine.forward_results[key] = run_function(machine, bound, arguments, keywords, node)
    return machine.forward_results[key]
