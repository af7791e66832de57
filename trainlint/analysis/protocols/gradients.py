"""Gradients between one backward pass and the next step: clean, dirty, or stale."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from trainlint.analysis.frameworks import framework_of
from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.knowledge import training
from trainlint.analysis.ownership import are_apart, may_touch, owners
from trainlint.analysis.protocol import Protocol, follow
from trainlint.analysis.trace import (
    Event,
    EventKind,
    Loop,
    Step,
    Trace,
    around,
    events,
    parts,
    steps,
)
from trainlint.analysis.values import Parameters, Tensor, Unknown, Value, elements


@dataclass(frozen=True)
class StaleGradients:
    """An optimizer steps on gradients that ``backward`` added to those of its last step.

    ``before``: that step, which is ``step`` itself on the lap before if a loop repeats them.
    ``cleared_outside`` is a ``zero_grad`` that runs, but only outside the loop that repeats the
    two: before it, or in a loop around it.
    """

    optimizer: Value
    step: Event
    before: Event
    backward: Event
    cleared_outside: Event | None


@dataclass(frozen=True)
class _Gradients:
    """``step``: the last step, if gradients were not cleared since; ``backward`` came after it."""

    dirty: bool = False
    step: Event | None = None
    backward: Event | None = None


_CLEAN = _Gradients()


class _Accumulation(Protocol[_Gradients]):
    def __init__(self, optimizer: Value) -> None:
        self.optimizer = optimizer
        self.found: dict[tuple[Event, Event], Event] = {}

    def watches(self, event: Event) -> bool:
        return event.kind is EventKind.BACKWARD or self._is_step(event) or self._clears(event)

    def event(self, state: _Gradients, event: Event) -> _Gradients:
        if event.kind is EventKind.BACKWARD:
            return _Gradients(True, state.step, event if state.step else None)
        if event.kind is not EventKind.STEP:
            return _CLEAN
        if state.step is not None and state.backward is not None:
            self.found.setdefault((event, state.backward), state.step)
        return _Gradients(False, event if state.dirty else state.step)

    def _is_step(self, event: Event) -> bool:
        return event.kind is EventKind.STEP and self._is_mine(event)

    def _clears(self, event: Event) -> bool:
        """Clears the gradients, makes the optimizer anew, or might do either."""
        if event.kind is EventKind.ZERO_GRAD:
            return not self._is_anothers(event.target)
        if event.kind is EventKind.NEW:
            return any(item is event.target for item in elements(self.optimizer))
        if event.kind is not EventKind.OPAQUE:
            return False
        subjects = (self.optimizer, *owners(self.optimizer))
        return may_touch(event, *subjects) or _mentions_loss(event)

    def _is_mine(self, event: Event) -> bool:
        mine = set(elements(self.optimizer))
        return any(item in mine for item in elements(event.target))

    def _is_anothers(self, target: Value | None) -> bool:
        return target is not None and are_apart(target, self.optimizer)


def _mentions_loss(event: Event) -> bool:
    """Whether a call is handed a loss with its graph; a detached one is only looked at."""
    return any(
        isinstance(item, Tensor) and item.is_loss and not item.detached
        for value in event.arguments
        for item in elements(value)
    )


def stale_gradients(run: Run) -> Iterator[StaleGradients]:
    """All places of a run where an optimizer steps on gradients that were never cleared."""
    if not any(True for _ in events(run.trace, EventKind.BACKWARD)):
        return
    for optimizer in optimizers(run):
        if is_unlike_torchs(run, optimizer):
            continue
        protocol = _Accumulation(optimizer)
        is_repeated = _is_called_again_and_again(run) or _is_forgotten(run, optimizer)
        laps = 2 if is_repeated else 1
        follow(run.trace * laps, protocol, _CLEAN)
        for (step, backward), before in protocol.found.items():
            if _is_cleared_by_count(run, optimizer, step):
                continue
            outside = _cleared_outside(run, optimizer, step)
            yield StaleGradients(optimizer, step, before, backward, outside)


def _is_called_again_and_again(run: Run) -> bool:
    """A Lightning module's ``training_step`` that steps by itself, and no hook clears for it."""
    root = run.root
    if root is None or root.owner is None or root.name != "training_step":
        return False
    framework = framework_of(root.owner)
    if framework is None or framework.name != "Lightning":
        return False
    hooks = [
        method
        for ancestor in root.owner.ancestors()
        for name, method in ancestor.own_methods.items()
        if name.startswith(("on_", "optimizer_"))
    ]
    return not any("zero_grad" in hook.vocabulary for hook in hooks)


def _is_forgotten(run: Run, optimizer: Value) -> bool:
    """Whether a function without a loop clears and steps optimizers, but never clears this one.

    It clears what it steps, so it is one training step, which somebody repeats.
    """
    if run.root is None:
        return False
    own_steps = [
        event
        for event in events(run.trace, EventKind.STEP)
        if event.target is not None and not are_apart(event.target, optimizer)
    ]
    if any(loops_around(run.trace, event) for event in own_steps):
        return False
    cleared = [event.target for event in events(run.trace, EventKind.ZERO_GRAD)]
    stepped = set(optimizers(run)) - {optimizer}
    return any(target in stepped for target in cleared) and all(
        target is not None and are_apart(target, optimizer) for target in cleared
    )


def steps_without_clearing(run: Run) -> bool:
    """Whether a run takes a backward pass and a step, once, and leaves clearing to its callers."""
    kinds = {event.kind for event in events(run.trace)}
    if EventKind.ZERO_GRAD in kinds or not {EventKind.BACKWARD, EventKind.STEP} <= kinds:
        return False
    return not any(loops_around(run.trace, event) for event in events(run.trace, EventKind.STEP))


def optimizers(run: Run) -> list[Value]:
    """The optimizers that step in a run, each once."""
    found: dict[int, Value] = {}
    for event in events(run.trace, EventKind.STEP):
        if event.target is not None and not isinstance(event.target, Parameters):
            found.setdefault(id(event.target), event.target)
    return list(found.values())


def is_unlike_torchs(run: Run, optimizer: Value) -> bool:
    """Whether an optimizer of an unknown class is used as none of torch's can be.

    ``step`` takes what torch's does not, or it has methods of its own: it may well clear gradients.
    """
    unseen = {item for item in elements(optimizer) if isinstance(item, Unknown)}
    for event in events(run.trace, EventKind.STEP, EventKind.OPAQUE) if unseen else ():
        node = event.node
        if not isinstance(node, ast.Call) or unseen.isdisjoint(elements(event.target)):
            continue
        if event.kind is EventKind.STEP and not _is_torchs_step(node):
            return True
        is_method = event.kind is EventKind.OPAQUE and isinstance(node.func, ast.Attribute)
        if is_method and node.func.attr not in training.OPTIMIZER_METHODS:  # type: ignore[attr-defined]
            return True
    return False


def _is_torchs_step(node: ast.Call) -> bool:
    return all(keyword.arg in ("closure", "optimizer", "model", None) for keyword in node.keywords)


def _is_cleared_by_count(run: Run, optimizer: Value, step: Event) -> bool:
    """``if count == 0: optimizer.zero_grad()``, in a loop that sets the count back to 0."""
    loop = innermost_loop(run.trace, step)
    if loop is None:
        return False
    inside = set(steps(loop.body))
    return any(
        event in inside
        and event.target is not None
        and not are_apart(event.target, optimizer)
        and any(_is_set_back(test, loop) for test in _tests_around(event, loop))
        for event in events(run.trace, EventKind.ZERO_GRAD)
    )


def _tests_around(event: Event, loop: Loop) -> Iterator[ast.expr]:
    node: ast.AST | None = event.node
    while node is not None and node is not loop.node:
        node = event.file.index.parents.get(node)
        if isinstance(node, ast.If):
            yield node.test


def _is_set_back(test: ast.expr, loop: Loop) -> bool:
    """Whether a test compares a variable with a constant that the loop assigns to it."""
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq)):
        return False
    reset = (ast.unparse(test.left), ast.unparse(test.comparators[0]))
    return isinstance(test.comparators[0], ast.Constant) and any(
        (ast.unparse(target), ast.unparse(statement.value)) == reset
        for statement in ast.walk(loop.node)
        if isinstance(statement, ast.Assign)
        for target in statement.targets
    )


def _cleared_outside(run: Run, optimizer: Value, step: Event) -> Event | None:
    innermost = innermost_loop(run.trace, step)
    if innermost is None:
        return None
    inside, outer = set(steps(innermost.body)), loops_around(run.trace, step)
    for event in events(run.trace, EventKind.ZERO_GRAD):
        if event in inside or event.target is None or are_apart(event.target, optimizer):
            continue
        if all(loop in outer for loop in loops_around(run.trace, event)):
            return event
    return None


def loops_around(trace: Trace, wanted: Step) -> list[Loop]:
    """The loops of a trace that hold a step, outermost first."""
    return [step for step in around(trace, wanted) if isinstance(step, Loop)]


def innermost_loop(trace: Trace, wanted: Step) -> Loop | None:
    """The innermost loop of a trace that holds a step."""
    for step in trace:
        if step is wanted:
            return None
        for part in parts(step):
            if any(item is wanted for item in steps(part)):
                inner = innermost_loop(part, wanted)
                return inner or (step if isinstance(step, Loop) else None)
    return None
