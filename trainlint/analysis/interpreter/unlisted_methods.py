"""Methods that no table lists: by what they are called on, as far as that is known."""

from __future__ import annotations

from trainlint.analysis.interpreter.container_methods import CHANGES_LIST, call_on_container
from trainlint.analysis.interpreter.expressions import mix
from trainlint.analysis.interpreter.method_calls import MethodCall
from trainlint.analysis.interpreter.module_calls import call_module
from trainlint.analysis.knowledge import modules, tensors
from trainlint.analysis.knowledge.libraries import BYSTANDERS
from trainlint.analysis.roles import Role, by_name, has_role, unseen_result
from trainlint.analysis.trace import EventKind
from trainlint.analysis.values import (
    Choice,
    Constant,
    External,
    Group,
    Object,
    Parameters,
    Tensor,
    Unknown,
    Value,
    choice,
    options,
)

_READS = tensors.PURE_METHODS | tensors.CUTS_GRAPH_METHODS


def call_unlisted(call: MethodCall) -> Value:
    """What a method that no table lists gives back."""
    receiver, name = call.receiver, call.name
    if isinstance(receiver, (Tensor, Choice)) and name in tensors.KEEPS_ACTIVATION_METHODS:
        return receiver
    if isinstance(receiver, Tensor):
        return mix(receiver, *call.arguments)
    if isinstance(receiver, Parameters):
        return receiver
    if isinstance(receiver, Group):
        found = call_on_container(call)
        if found is None:
            receiver.last_is_sure = receiver.last_is_sure and call.name not in CHANGES_LIST
            found = choice(receiver.elements) if receiver.elements else Unknown()
        return found
    if has_role(receiver, Role.MODULE):
        return _on_module(call)
    return _unseen(call)


def _unseen(call: MethodCall) -> Value:
    """A method of an object that the model cannot open."""
    receiver, name = call.receiver, call.name
    held = _held_callable(call)
    if held is not None:
        return call_module(call.machine, held, call.arguments, call.keywords, call.node)
    if name in modules.RETURNS_ITSELF:
        return receiver
    if name in _READS and all(
        isinstance(option, (Unknown, Tensor, Constant)) for option in options(receiver)
    ):
        return mix(receiver, *call.arguments)
    if isinstance(receiver, Object) and receiver.dotted == "functools.partial":
        return Unknown()
    if isinstance(receiver, Object) and receiver.dotted.startswith((*BYSTANDERS, "state_dict")):
        return Unknown(hint=name)
    if isinstance(receiver, Constant):
        return _of_text(receiver, name, call.arguments)
    if isinstance(receiver, External) or is_new_data(receiver):
        return Unknown()
    call.machine.emit(EventKind.OPAQUE, call.node, receiver, call.everything)
    return unseen_result(name)


def _of_text(text: Constant, name: str, arguments: list[Value]) -> Value:
    """``phase.lower()`` and ``phase.startswith("train")``, where the phase is known."""
    given = [item.value for item in arguments if isinstance(item, Constant)]
    if not isinstance(text.value, str) or len(given) != len(arguments):
        return Unknown()
    if name in ("lower", "upper", "strip") and not given:
        return Constant(getattr(text.value, name)())
    if name in ("startswith", "endswith") and len(given) == 1 and isinstance(given[0], str):
        return Constant(getattr(text.value, name)(given[0]))
    return Unknown()


def _held_callable(call: MethodCall) -> Value | None:
    """The loss function, or known network, that an unknown object holds under the name called."""
    from trainlint.analysis.interpreter.attributes import attribute_of

    receiver, suggested = call.receiver, by_name(call.name)
    is_known = suggested is Role.MODULE and call.name in receiver.members
    if not isinstance(receiver, Unknown) or not (is_known or suggested is Role.LOSS_FUNCTION):
        return None
    return attribute_of(call.machine, receiver, call.name, call.node)


def _on_module(call: MethodCall) -> Value:
    """A method of a network that the model cannot open: its result passed through the network."""
    if call.name in modules.RETURNS_ITSELF:
        return call.receiver
    if call.name == "forward":
        return call_module(call.machine, call.receiver, call.arguments, call.keywords, call.node)
    if call.name in modules.LEAVES_TRAINING_ALONE:
        return Unknown(hint=call.name)
    if call.name in ("modules", "children", "named_modules", "named_children"):
        return Group([Unknown(hint="module", parent=call.receiver)], open=True)
    call.machine.emit(EventKind.OPAQUE, call.node, call.receiver, call.everything)
    return Unknown(hint=call.name, parent=call.receiver)


def is_new_data(value: Value) -> bool:
    """What a function of torch such as ``torch.zeros`` made."""
    if not isinstance(value, Object):
        return False
    head, _, last = value.dotted.rpartition(".")
    return head == "torch" and last.islower() and last not in ("load", "compile")
