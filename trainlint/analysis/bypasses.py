"""Training steps that go around the wrapper which keeps the gradients of all processes equal."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trainlint.analysis.knowledge import modules
from trainlint.analysis.protocols.discarded import is_discarded
from trainlint.analysis.structure import layers
from trainlint.analysis.trace import Call, Event, EventKind, around, events
from trainlint.analysis.values import Instance, Object, Tensor, Value, elements
from trainlint.analysis.wrapping import DISTRIBUTED_DATA_PARALLEL

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel
    from trainlint.analysis.interpreter.runs import Run


@dataclass(frozen=True)
class Bypass:
    """A forward pass of the model inside ``wrapper``, whose result is trained on.

    ``node`` is the call that training code makes: of the model, or of one of its methods.
    """

    wrapper: Object
    node: ast.AST
    file: FileModel
    backward: Event


def bypasses(run: Run) -> Iterator[Bypass]:
    """All training steps of a run whose loss does not pass through the wrapper of its model."""
    if not run.complete:
        return
    order = list(events(run.trace))
    for position, made in enumerate(order):
        wrapper = made.target
        if made.kind is not EventKind.NEW or not _is_wrapper(wrapper):
            continue
        assert isinstance(wrapper, Object)
        inside = _layers_inside(wrapper)
        for backward in order[position:]:
            if backward.kind is not EventKind.BACKWARD:
                continue
            same = [event for event in order if event.node is backward.node]
            forward = _last_forward(order[position:], backward, inside)
            if forward is None or not _is_wrapped_around(run, made, forward):
                continue
            if _goes_around(same, inside) or _says_so(forward, backward, inside):
                node, file = _outermost_call(run, forward, wrapper)
                is_trained = not is_discarded(run, backward, wrapper)
                if is_trained and not _may_call_wrapper(order, node):
                    yield Bypass(wrapper, node, file, backward)


def _is_wrapped_around(run: Run, made: Event, forward: Event) -> bool:
    """Whether the code that wraps goes on to the forward pass, or is a constructor.

    A helper that returns the wrapper has left it to others which model they call.
    """
    wrapping = made.file.index.enclosing_function(made.node)
    if wrapping is None or wrapping.name == "__init__":
        return True
    running = {step.function.node for step in around(run.trace, forward) if isinstance(step, Call)}
    return wrapping in running or (run.root is not None and run.root.node is wrapping)


def _is_wrapper(value: Value | None) -> bool:
    return isinstance(value, Object) and value.dotted in DISTRIBUTED_DATA_PARALLEL


def _layers_inside(wrapper: Object) -> set[Value]:
    """The wrapped layers; none for a copy, such as an average, which looks like its original."""
    wrapped = wrapper.arguments[0] if wrapper.arguments else None
    if wrapped is None or any(getattr(item, "copy_of", None) for item in elements(wrapped)):
        return set()
    return set(layers(wrapped))


def _goes_around(backward: list[Event], inside: set[Value]) -> bool:
    """Whether on no path through one ``backward()`` the loss has passed through a wrapper."""
    trained = {
        part
        for event in backward
        for loss in elements(event.target)
        if isinstance(loss, Tensor)
        for module in loss.trains
        for part in _unwrapping(module)
    }
    return not any(map(_is_wrapper, trained)) and not inside.isdisjoint(trained)


def _may_call_wrapper(order: list[Event], call: ast.AST) -> bool:
    """Whether the wrapper is called there on another path: ``if ranks > 1: model = DDP(model)``."""
    return any(
        event.kind is EventKind.FORWARD
        and event.node is call
        and any(map(_is_wrapper, elements(event.target)))
        for event in order
    )


def _says_so(forward: Event, backward: Event, inside: set[Value]) -> bool:
    """Whether a loss comes from ``wrapper.module(x)``, though another branch calls the wrapper."""
    node = forward.node
    is_spelled = (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "module"
    )
    return is_spelled and any(
        _goes_around([replace(backward, target=loss)], inside) for loss in elements(backward.target)
    )


def _unwrapping(module: Value) -> Iterator[Value]:
    """A module, and what it wraps, down to the model."""
    for option in elements(module):
        current: Value = option
        yield current
        while (
            isinstance(current, Object) and current.dotted in modules.WRAPPERS and current.arguments
        ):
            inner = current.arguments[0]
            yield from elements(inner)
            current = inner


def _last_forward(order: list[Event], backward: Event, inside: set[Value]) -> Event | None:
    found: Event | None = None
    for event in order:
        if event is backward:
            return found
        if event.kind is EventKind.FORWARD and any(
            item in inside for item in elements(event.target)
        ):
            found = event
    return found


def _outermost_call(run: Run, forward: Event, wrapper: Object) -> tuple[ast.AST, FileModel]:
    """Of calls within methods of the model, the one that training code makes."""
    inner = next(elements(wrapper.arguments[0]), None)
    for step in around(run.trace, forward):
        is_method = (
            isinstance(step, Call)
            and isinstance(inner, Instance)
            and step.function.owner in inner.definition.ancestors()
        )
        if is_method and isinstance(step, Call):
            return step.node, step.file
    return forward.node, forward.file
