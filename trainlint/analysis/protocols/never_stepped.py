"""Training loops that compute gradients and clear them, but never use them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.ownership import are_apart, may_touch, owners
from trainlint.analysis.protocols.gradients import innermost_loop
from trainlint.analysis.roles import Role, has_role
from trainlint.analysis.trace import Event, EventKind, Loop, events
from trainlint.analysis.values import Parameters, Tensor, Value, elements

# Who reads gradients or writes weights may well move the weights by hand.
_BY_HAND = re.compile(r"\.grad\b|\.data\b|_foreach_|register_hook|fused_backward|post_accumulate")


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
        optimizer = zero_grad.target
        if optimizer is None or not has_role(optimizer, Role.OPTIMIZER):
            continue
        loop = innermost_loop(run.trace, zero_grad)
        if loop is None or loop in seen or _may_step(run, optimizer) or _by_hand(zero_grad):
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
        if backward is not None and not _by_hand(backward):
            yield NeverStepped(optimizer, backward, zero_grad)


def _may_step(run: Run, optimizer: Value) -> bool:
    for event in events(run.trace, EventKind.STEP, EventKind.OPAQUE):
        target = event.target
        if event.kind is EventKind.OPAQUE:
            if may_touch(event, optimizer, *owners(optimizer)):
                return True
        elif target is None or isinstance(target, Parameters) or not are_apart(target, optimizer):
            return True
    hints = {item.hint for item in elements(optimizer)}
    others = (event for other in run.file.runs if other is not run for event in events(other.trace))
    return any(
        event.kind is EventKind.STEP and any(item.hint in hints for item in elements(event.target))
        for event in others
    )


def _by_hand(event: Event) -> bool:
    function = event.file.index.enclosing_function(event.node)
    text = event.file.segment(function) if function else event.file.source.text
    return bool(_BY_HAND.search(text))


def _may_be_for(backward: Event, optimizer: Value) -> bool:
    """Whether the loss does not certainly come from another optimizer's networks alone."""
    mine = owners(optimizer)
    trained = {
        module
        for item in elements(backward.target)
        if isinstance(item, Tensor)
        for module in item.trains
    }
    return not (mine and trained) or not mine.isdisjoint(trained)
