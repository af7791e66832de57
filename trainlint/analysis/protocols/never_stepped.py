"""Training loops that compute gradients and clear them, but never use them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.knowledge import training
from trainlint.analysis.ownership import (
    are_apart,
    may_touch,
    networks,
    only_uses_network,
    owners,
    reachable,
    trained_networks,
)
from trainlint.analysis.protocols.gradients import innermost_loop, loops_around
from trainlint.analysis.protocols.modes import is_forward
from trainlint.analysis.roles import Role, has_role
from trainlint.analysis.trace import Call, Event, EventKind, Loop, events, steps
from trainlint.analysis.values import (
    Object,
    Parameters,
    Unknown,
    Value,
    choice,
    elements,
)

# Who reads gradients or writes weights may well move the weights by hand.
_BY_HAND = re.compile(
    r"\.grad\b(?!\s+is\b|(\.data)?\.(norm|clamp_)\()|\.data\s*[-+*/]?=(?!=)|\.data\.(?!clamp_)\w+_\(|"
    r"_foreach_|register_hook|fused_backward|post_accumulate"
)


@dataclass(frozen=True)
class NeverStepped:
    """An optimizer that a loop clears for each ``backward``, and that nothing steps."""

    optimizer: Value
    backward: Event
    zero_grad: Event


def never_stepped(run: Run) -> Iterator[NeverStepped]:
    """The training loops of a run whose optimizer never steps, each once."""
    if not run.complete:
        return
    seen: set[Loop] = set()
    for zero_grad in events(run.trace, EventKind.ZERO_GRAD):
        optimizer, loop = _optimizer_of(run, zero_grad.target), innermost_loop(run.trace, zero_grad)
        if optimizer is None or loop is None or loop in seen:
            continue
        if _may_step(run, loop, optimizer) or _by_hand(loop):
            continue
        seen.add(loop)
        backward = next(
            (
                item
                for item in events(loop.body, EventKind.BACKWARD)
                if _may_be_for(item, optimizer)
            ),
            None,
        )
        if backward is not None:
            yield NeverStepped(optimizer, backward, zero_grad)


def _optimizer_of(run: Run, cleared: Value | None) -> Value | None:
    """The optimizer that is cleared, or the one that was made for the network that is."""
    if has_role(cleared, Role.OPTIMIZER) or not has_role(cleared, Role.MODULE):
        return cleared if has_role(cleared, Role.OPTIMIZER) else None
    made = [
        event.target
        for event in events(run.trace, EventKind.NEW)
        if isinstance(event.target, Object)
        and has_role(event.target, Role.OPTIMIZER)
        and not networks(owners(event.target)).isdisjoint(networks(elements(cleared)))
    ]
    return choice(made) if made else None


def _may_step(run: Run, loop: Loop, optimizer: Value) -> bool:
    """Whether something steps the optimizer, or gets hold of it and may."""
    outermost = _first_loop_with(optimizer, [*loops_around(run.trace, loop), loop])
    repeated, inside = set(steps(outermost.body)), set(steps(loop.body))
    has_started = is_handed_on = False
    for event in events(run.trace, EventKind.STEP, EventKind.OPAQUE):
        target = event.target
        has_started = has_started or event in repeated
        if event.kind is EventKind.STEP:
            if target is None or isinstance(target, Parameters):
                return True
            if not are_apart(target, optimizer):
                return True
            continue
        held = owners(optimizer) if event in inside else ()
        is_harmless = has_role(target, Role.SCHEDULER) or only_uses_network(event, optimizer)
        if is_harmless or not may_touch(event, optimizer, *held):
            continue
        if has_started:
            return True
        is_handed_on = True
    hints = {item.hint for item in elements(optimizer)}
    return (is_handed_on and _uses_older_objects(outermost)) or any(
        not hints.isdisjoint(item.hint for item in elements(step.target))
        for each in run.file.runs
        for step in events(each.trace, EventKind.STEP)
    )


def _first_loop_with(optimizer: Value, loops: list[Loop]) -> Loop:
    """The outermost of some loops that starts when the optimizer is there already."""
    made = max(_root(item).birth for item in elements(optimizer))
    return next((loop for loop in loops if loop.start > made), loops[-1])


def _uses_older_objects(loop: Loop) -> bool:
    """Whether a loop may step by what is unknown and older: what an earlier call returned, say."""
    for event in events(loop.body, EventKind.OPAQUE):
        root = _root(event.target) if event.target is not None else None
        is_older = isinstance(root, (Unknown, Object)) and root.birth < loop.start
        function = event.node.func if isinstance(event.node, ast.Call) else None
        if is_older and not (
            isinstance(function, ast.Attribute) and not training.speaks_of_update(function.attr)
        ):
            return True
    return False


def _root(value: Value) -> Value:
    """The value that an attribute of an unknown object hangs on in the end."""
    while isinstance(value, Unknown) and value.parent is not None:
        value = value.parent
    return value


def _by_hand(loop: Loop) -> bool:
    """Whether the loop, or a function that it calls, says that gradients are used directly."""
    texts = [loop.file.segment(loop.node)] if isinstance(loop.node, ast.stmt) else []
    texts += [
        step.function.file.segment(step.function.node)
        for step in steps(loop.body)
        if isinstance(step, Call) and not is_forward(step)
    ]
    return any(_BY_HAND.search(text) for text in texts)


def _may_be_for(backward: Event, optimizer: Value) -> bool:
    """Whether the loss does not certainly come from another optimizer's networks alone."""
    mine, trained = reachable(networks(owners(optimizer))), trained_networks(backward.target)
    return not (mine and trained) or not mine.isdisjoint(trained)
