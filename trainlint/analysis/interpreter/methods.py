"""Method calls: whose method it is, and which handler knows it."""

from __future__ import annotations

import ast

from trainlint.analysis.interpreter.conditions import choosing
from trainlint.analysis.interpreter.container_methods import CONTAINER_METHODS
from trainlint.analysis.interpreter.machine import Machine
from trainlint.analysis.interpreter.method_calls import MethodCall
from trainlint.analysis.interpreter.module_calls import call_module
from trainlint.analysis.interpreter.tensor_methods import TENSOR_METHODS
from trainlint.analysis.interpreter.training_methods import TRAINING_METHODS
from trainlint.analysis.interpreter.unlisted_methods import call_unlisted, is_new_data
from trainlint.analysis.knowledge import modules
from trainlint.analysis.roles import Role, has_role, of_class, unwrapped
from trainlint.analysis.trace import Branch, Trace
from trainlint.analysis.values import (
    Choice,
    External,
    FunctionValue,
    Instance,
    LambdaValue,
    Object,
    Tensor,
    Unknown,
    Value,
    choice,
    without_none,
)


def call_method(
    machine: Machine,
    receiver: Value,
    name: str,
    arguments: list[Value],
    keywords: dict[str, Value],
    node: ast.Call,
    *,
    inherited: bool = False,
) -> Value:
    """Call a method; ``inherited`` skips the project's own definition of it."""
    receiver = _behind_wrapper(without_none(receiver), name)
    found = MethodCall(machine, receiver, name, arguments, keywords, node)
    if isinstance(receiver, Instance) and not inherited:
        own = _own_method(found, receiver)
        if own is not None:
            return own
    stored = receiver.members.get(name) if isinstance(receiver, (Unknown, Object)) else None
    if isinstance(stored, (Object, Instance, FunctionValue, LambdaValue, External)):
        return _call_stored(found, stored)
    if isinstance(receiver, Choice) and _is_split(receiver, name):
        return _call_options(found, receiver)
    if isinstance(receiver, FunctionValue):
        return Unknown()
    verb = _VERBS.get(name)
    if verb is not None:
        result = verb(found)
        if result is not None:
            return result
    return call_unlisted(found)


def _call_stored(call: MethodCall, stored: Value) -> Value:
    """``args.criterion(...)``: what was kept as an attribute of a foreign object is called."""
    from trainlint.analysis.interpreter.calls import call_value

    return call_value(call.machine, stored, call.arguments, call.keywords, call.node)


def _behind_wrapper(receiver: Value, name: str) -> Value:
    """``torch.compile(model).generate()`` is the model's own method."""
    if not isinstance(receiver, Object) or receiver.dotted not in modules.WRAPPERS:
        return receiver
    inside = unwrapped(receiver)
    has_own = isinstance(inside, Instance) and inside.definition.method(name) is not None
    return inside if has_own and name not in _VERBS and name != "forward" else receiver


def _own_method(call: MethodCall, receiver: Instance) -> Value | None:
    from trainlint.analysis.interpreter.calls import call_value, run_function

    definition = receiver.definition
    if call.name == "step" and of_class(definition) is Role.OPTIMIZER:
        return None
    is_mode_switch = definition.is_module and call.name in ("train", "eval") and call.name in _VERBS
    method = definition.method(call.name)
    if method is not None and not (is_mode_switch and _is_mode_override(call, receiver)):
        if definition.is_module and call.name == "forward":
            return call_module(call.machine, receiver, call.arguments, call.keywords, call.node)
        closure = call.machine.module_environment(method.file)
        bound = FunctionValue(method, None if method.is_static else receiver, closure)
        return run_function(call.machine, bound, call.arguments, call.keywords, call.node)
    stored = receiver.members.get(call.name)
    if stored is not None and not is_mode_switch:
        return call_value(call.machine, stored, call.arguments, call.keywords, call.node)
    if call.name in _VERBS or definition.is_module:
        return None
    from trainlint.analysis.interpreter.attributes import attribute_of

    callee = attribute_of(call.machine, receiver, call.name, call.node)
    is_method = definition.has_unknown_base() or not has_role(callee, Role.MODULE)
    if isinstance(callee, Unknown) and is_method:
        return None
    return call_value(call.machine, callee, call.arguments, call.keywords, call.node)


def _is_mode_override(call: MethodCall, receiver: Instance) -> bool:
    """``train(self, mode=True)`` switches modes; ``train(self, loader)`` is a training loop."""
    method = receiver.definition.method(call.name)
    assert method is not None
    names = [parameter.arg for parameter in method.parameters[1:]]
    return (
        names in ([], ["mode"])
        and len(call.arguments) <= 1
        and method.vocabulary.isdisjoint({"backward", "zero_grad"})
    )


def _is_split(receiver: Choice, name: str) -> bool:
    """Whether the options have to be called one by one: some are objects of the project.

    Tensors each keep what they know.
    """
    may_be_tensors = all(
        isinstance(option, (Tensor, Unknown)) or is_new_data(option) for option in receiver.options
    )
    if may_be_tensors and any(isinstance(option, Tensor) for option in receiver.options):
        return True
    return any(
        isinstance(option, Instance) and option.definition.method(name) is not None
        for option in receiver.options
    )


def _call_options(call: MethodCall, receiver: Choice) -> Value:
    branch = Branch(call.node, [])
    results: list[Value] = []
    for option in receiver.options:
        trace: Trace = []
        with call.machine.recording(trace), call.machine.conditionally():
            results.append(
                call_method(
                    call.machine, option, call.name, call.arguments, call.keywords, call.node
                )
            )
        branch.ways.append((choosing(receiver, option), trace))
    if any(trace for _, trace in branch.ways):
        call.machine.add(branch)
    return choice(results)


_VERBS = {**TRAINING_METHODS, **TENSOR_METHODS, **CONTAINER_METHODS}
_TRAINING_VERBS = frozenset(
    {"zero_grad", "step", "backward", "manual_backward", "train", "eval", "set_epoch", "update"}
)


def is_verb(name: str) -> bool:
    """Whether a method is a verb of training, whose effect is known without knowing the object."""
    return name in _TRAINING_VERBS
