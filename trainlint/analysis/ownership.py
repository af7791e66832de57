"""Whose parameters an optimizer moves, and what a call can reach."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterable

from trainlint.analysis.knowledge import training
from trainlint.analysis.roles import Role, has_role, owner_of_parameters, unwrapped
from trainlint.analysis.trace import Event
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
    elements,
)

_MAX_REACHED = 3_000


def owners(optimizer: Value) -> set[Value]:
    """The modules whose parameters an optimizer was given; empty where that is not visible."""
    found: set[Value] = set()
    for option in elements(optimizer):
        given = None
        if isinstance(option, Object):
            given = option.argument(0, "params")
        elif isinstance(option, Instance) and option.arguments:
            given = option.arguments[0]
        found |= {
            owner_of_parameters(item) for item in elements(given) if isinstance(item, Parameters)
        }
    return found


def reachable(values: Iterable[Value | None], *, through_tensors: bool = True) -> set[Value]:
    """Everything that code holding these values can get at: elements, attributes, arguments.

    Through a tensor it gets at the modules that made it: their parameters, not their modes.
    """
    found: set[Value] = set()
    pending = deque(value for value in values if value is not None)
    while pending and len(found) < _MAX_REACHED:
        value = pending.popleft()
        if value in found:
            continue
        found.add(value)
        if isinstance(value, Choice):
            pending.extend(value.options)
        elif isinstance(value, Group):
            pending.extend(value.elements)
        elif isinstance(value, Object):
            pending.extend([*value.arguments, *value.keywords.values()])
        elif isinstance(value, Parameters):
            pending.append(value.owner)
        elif isinstance(value, Tensor) and through_tensors:
            pending.extend(value.modules)
        elif isinstance(value, FunctionValue) and value.receiver is not None:
            pending.append(value.receiver)
        if isinstance(value, (Instance, Unknown, Object)):
            pending.extend(value.members.values())
            pending.extend(value.arguments if isinstance(value, Instance) else [])
    return found


def may_touch(event: Event, *subjects: Value) -> bool:
    """Whether an unresolved call can reach one of the subjects, or what they hold.

    Not through a tensor: with an output alone nobody steps, clears or switches its network.
    """
    held = reachable(event.arguments, through_tensors=False)
    return any(option in held for subject in subjects for option in elements(subject))


def only_uses_network(event: Event, optimizer: Value) -> bool:
    """Whether an unseen call is a method of a network whose name speaks of no training step.

    It may run the network; unless it is handed the optimizer, it moves no weight.
    """
    node = event.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    receiver = set(elements(event.target))
    is_network = has_role(event.target, Role.MODULE) and not any(
        isinstance(item, Tensor) for item in receiver
    )
    handed = {item for value in event.arguments for item in elements(value)} - receiver
    return (
        is_network
        and not training.speaks_of_update(node.func.attr)
        and handed.isdisjoint(elements(optimizer))
    )


def networks(values: Iterable[Value]) -> set[Value]:
    """The modules among some values, out of choices and wrappers."""
    found: set[Value] = set()
    pending = list(values)
    while pending:
        for item in elements(pending.pop()):
            inside = unwrapped(item)
            if inside is item:
                found.add(item)
            else:
                pending.append(inside)
    return found


def trained_networks(loss: Value | None) -> set[Value]:
    """The modules that a backward pass from a loss reaches."""
    found = (item for item in elements(loss) if isinstance(item, Tensor))
    return networks(module for tensor in found for module in tensor.trains)


def are_apart(first: Value, second: Value) -> bool:
    """Whether two values (optimizers, modules, parameters) certainly share no parameter."""
    one, other = _parameter_owners(first), _parameter_owners(second)
    if not one or not other:
        return _are_named_apart(first, second)
    if any(isinstance(item, Unknown) and item.hint in ("", "self") for item in one | other):
        return False
    return not (reachable(one) & other or reachable(other) & one)


def _parameter_owners(value: Value) -> set[Value]:
    found: set[Value] = set()
    for option in elements(value):
        if has_role(option, Role.OPTIMIZER):
            found |= owners(option)
        elif has_role(option, Role.MODULE):
            found.add(unwrapped(option))
        elif isinstance(option, Parameters):
            found.add(owner_of_parameters(option))
    return found


def _are_named_apart(first: Value, second: Value) -> bool:
    """Two different unknown optimizers with names of their own."""
    one, other = set(elements(first)), set(elements(second))
    if one & other or reachable(one) & other or reachable(other) & one:
        return False
    both = [*one, *other]
    return all(has_role(item, Role.OPTIMIZER) and item.hint for item in both) and len(
        {item.hint for item in both}
    ) == len(both)
