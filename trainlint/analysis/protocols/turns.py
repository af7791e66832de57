"""Clearing and stepping that take turns: each waits for a counter that the loop itself changes."""

from __future__ import annotations

import ast

from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.ownership import are_apart
from trainlint.analysis.protocols.gradients import StaleGradients, loops_around
from trainlint.analysis.trace import (
    Branch,
    Event,
    EventKind,
    Jump,
    Loop,
    Trace,
    around,
    events,
    parts,
    steps,
)


def take_turns(run: Run, stale: StaleGradients) -> bool:
    """Whether a counter decides over the step and over a ``zero_grad`` in the same loop.

    ``if i % k == 0: zero_grad()`` and ``if (i + 1) % k == 0: step()`` ask two questions, whose
    answers only arithmetic can tie together.
    """
    loop = _loop_of_both(run, stale)
    if loop is None or not any(step is stale.before for step in steps(loop.body)):
        return False
    step_guards = _guards(loop, stale.step)
    for clear in events(loop.body, EventKind.ZERO_GRAD):
        if clear.target is None or are_apart(clear.target, stale.optimizer):
            continue
        guards = [branch for branch in _guards(loop, clear) if branch not in step_guards]
        if guards and (step_guards or _is_left_before(loop, stale.step, guards)):
            return True
    return False


def _loop_of_both(run: Run, stale: StaleGradients) -> Loop | None:
    for loop in reversed(loops_around(run.trace, stale.step)):
        if any(step is stale.backward for step in steps(loop.body)):
            return loop
    return None


def _guards(loop: Loop, event: Event) -> list[Branch]:
    """The branches around an event in a loop that ask something new on each lap."""
    return [
        step
        for step in around(loop.body, event)
        if isinstance(step, Branch) and _is_asked_anew(step, loop)
    ]


def _is_asked_anew(branch: Branch, loop: Loop) -> bool:
    return isinstance(branch.node, ast.If) and any(
        condition.volatile or condition.birth >= loop.start
        for assumed, _ in branch.ways
        for condition, _ in assumed
    )


def _is_left_before(loop: Loop, event: Event, guards: list[Branch]) -> bool:
    """Whether a lap may end before the event, by a test that shares a name with the guards'."""
    names = {name for branch in guards for name in _names(branch)}
    return any(
        _is_asked_anew(branch, loop) and not names.isdisjoint(_names(branch))
        for branch in _ends_before(loop.body, event)
    )


def _ends_before(trace: Trace, event: Event) -> list[Branch]:
    """The branches before an event that may jump."""
    found: list[Branch] = []
    for step in trace:
        if step is event:
            break
        if isinstance(step, Branch) and any(
            isinstance(item, Jump) for _, way in step.ways for item in way
        ):
            found.append(step)
        for part in parts(step):
            if any(item is event for item in steps(part)):
                return [*found, *_ends_before(part, event)]
    return found


def _names(branch: Branch) -> set[str]:
    test = branch.node.test if isinstance(branch.node, ast.If) else None
    return {node.id for node in ast.walk(test) if isinstance(node, ast.Name)} if test else set()
