"""Methods of lists, mappings and torch's containers of layers."""

from __future__ import annotations

from collections.abc import Callable

from trainlint.analysis.interpreter.method_calls import MethodCall
from trainlint.analysis.values import (
    Constant,
    Group,
    Object,
    Unknown,
    Value,
    choice,
    contained,
    is_listed,
)

_GROWING = frozenset({"torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ModuleDict"})
CHANGES_LIST = frozenset({"pop", "popleft", "popitem", "remove", "clear", "reverse", "sort"})


def call_on_container(call: MethodCall) -> Value | None:
    """What a method of a list, mapping or container gives back; None for one that is not known."""
    group = call.receiver
    if isinstance(group, Object) and group.dotted in _GROWING:
        return _container_method(call, group)
    if not isinstance(group, Group):
        return None
    if call.name in ("append", "add", "insert", "appendleft"):
        group.elements.extend(call.arguments[-1:])
        group.last_is_sure = call.name == "append" and call.machine.conditional_depth <= group.depth
    elif call.name == "update" and group.keys is not None:
        return _update_mapping(call, group)
    elif call.name in ("extend", "update"):
        for argument in call.arguments:
            group.elements.extend(argument.elements if isinstance(argument, Group) else [argument])
        is_sure = bool(call.arguments) and is_listed(call.arguments[-1])
        group.last_is_sure = is_sure and call.machine.conditional_depth <= group.depth
    elif call.name == "get" and group.keys is not None:
        return _got(call, group)
    elif call.name == "values" and group.keys is not None:
        return Group(list(group.elements), open=group.open, depth=group.depth)
    elif call.name in ("values", "copy"):
        return group
    elif call.name == "items":
        return _items(group)
    else:
        return None
    group.open = True
    return Constant(None)


def _items(group: Group) -> Group:
    """Pairs, each of its own where the mapping is written out in full."""
    if group.keys and not group.open and all(isinstance(key, str) for key in group.keys):
        pairs = zip(group.keys, group.elements, strict=False)
        return Group([Group([Constant(key), value]) for key, value in pairs])
    return Group(
        [Group([Unknown(), choice(group.elements) if group.elements else Unknown()])], open=True
    )


def _got(call: MethodCall, group: Group) -> Value:
    """``mapping.get(key, default)``."""
    key, default = call.argument(0, "key"), call.argument(1, "default") or Constant(None)
    if not isinstance(key, Constant) or group.open:
        return choice([*group.elements, default])
    assert group.keys is not None
    found = [
        item for name, item in zip(group.keys, group.elements, strict=False) if name == key.value
    ]
    return found[-1] if found else default


def _update_mapping(call: MethodCall, group: Group) -> Value:
    """``options.update(others)``; what is only added under a condition may be missing."""
    assert group.keys is not None
    is_sure = call.machine.conditional_depth <= group.depth
    added = list(call.keywords.items())
    for argument in call.arguments:
        if isinstance(argument, Group) and argument.keys is not None:
            added.extend(zip(map(str, argument.keys), argument.elements, strict=False))
        else:
            group.open = True
    for key, value in added:
        if not is_sure:
            held = group.elements[group.keys.index(key)] if key in group.keys else Constant(None)
            value = choice([held, value])
        group.keys.append(key)
        group.elements.append(value)
    return Constant(None)


def _container_method(call: MethodCall, container: Object) -> Value | None:
    """``nn.ModuleList().append(layer)``; the whole of what it holds is not known any more."""
    if call.name in ("append", "insert", "extend", "update"):
        container.arguments = [*container.arguments, *call.arguments[-1:], Group(open=True)]
        return container
    inside = contained(container)
    if inside and call.name == "values":
        return Group(inside, open=True)
    if inside and call.name == "items":
        return Group([Group([Unknown(), choice(inside)])], open=True)
    return None


CONTAINER_METHODS: dict[str, Callable[[MethodCall], Value | None]] = dict.fromkeys(
    ("append", "add", "insert", "appendleft", "extend", "values", "copy", "items", "get"),
    call_on_container,
)
