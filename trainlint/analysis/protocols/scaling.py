"""Gradients that a GradScaler made larger: who uses them before they are unscaled again."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.ownership import may_touch
from trainlint.analysis.protocol import Protocol, follow
from trainlint.analysis.protocols.gradients import innermost_loop
from trainlint.analysis.receivers import assigned_values
from trainlint.analysis.trace import Event, EventKind, Loop, Trace, events, steps
from trainlint.analysis.values import (
    Constant,
    Object,
    Tensor,
    Unknown,
    Value,
    elements,
    options,
    overlaps,
)

_SCALER_EVENTS = (EventKind.SCALER_STEP, EventKind.SCALER_UPDATE)


class Gradients(enum.Enum):
    """What the gradients are, as far as the last backward pass tells."""

    NONE = "none"
    PLAIN = "plain"
    SCALED = "scaled"
    UNSCALED = "unscaled"


@dataclass(frozen=True)
class ScaledClip:
    """Gradients are clipped while scaled, and the scaler's step follows."""

    clip: Event
    step: Event


@dataclass(frozen=True)
class ScaledStep:
    """An optimizer steps by itself on gradients that a scaler made larger."""

    step: Event
    backward: Event


@dataclass(frozen=True)
class _State:
    gradients: Gradients = Gradients.NONE
    backward: Event | None = None
    clip: Event | None = None


class _Scaling(Protocol[_State]):
    def __init__(self, scalers: list[Value], scaler_steps: set[object]) -> None:
        self.clipped: dict[ScaledClip, None] = {}
        self.seen_at: dict[Event, set[Gradients]] = {}
        self.stepped: dict[ScaledStep, None] = {}
        self._scalers = scalers
        self._scaler_steps = scaler_steps

    def watches(self, event: Event) -> bool:
        if event.kind is EventKind.OPAQUE:
            return may_touch(event, *self._scalers)
        if event.kind is EventKind.STEP:
            return event.node not in self._scaler_steps
        return event.kind in (
            EventKind.BACKWARD,
            EventKind.UNSCALE,
            EventKind.CLIP,
            EventKind.SCALER_STEP,
        )

    def event(self, state: _State, event: Event) -> _State:
        if event.kind is EventKind.BACKWARD:
            is_scaled = scaler_of(event) is not None
            return _State(Gradients.SCALED if is_scaled else Gradients.PLAIN, event)
        if event.kind in (EventKind.UNSCALE, EventKind.OPAQUE):
            return replace(state, gradients=Gradients.UNSCALED)
        self.seen_at.setdefault(event, set()).add(state.gradients)
        if event.kind is EventKind.CLIP:
            return replace(state, clip=event) if state.gradients is Gradients.SCALED else state
        if event.kind is EventKind.SCALER_STEP and state.clip is not None:
            self.clipped[ScaledClip(state.clip, event)] = None
        if event.kind is EventKind.STEP and state.gradients is Gradients.SCALED:
            assert state.backward is not None
            self.stepped[ScaledStep(event, state.backward)] = None
        return _State()

    def are_surely_scaled(self, event: Event) -> bool:
        """No path leads to the event with gradients that are right."""
        return self.seen_at[event].isdisjoint({Gradients.UNSCALED})


def scaler_of(backward: Event) -> Value | None:
    """The scaler, if it is not switched off, whose scaled loss a backward pass starts from."""
    for tensor in elements(backward.target):
        if isinstance(tensor, Tensor) and tensor.scaler is not None:
            return None if _is_off(tensor.scaler) else tensor.scaler
    return None


def scaled_clips(run: Run) -> Iterator[ScaledClip]:
    """Places of a run that clip scaled gradients."""
    protocol = _followed(run)
    yield from (found for found in protocol.clipped if protocol.are_surely_scaled(found.clip))


def scaled_steps(run: Run) -> Iterator[ScaledStep]:
    """Places of a run where an optimizer's own step uses scaled gradients."""
    protocol = _followed(run)
    for found in protocol.stepped:
        seen = protocol.seen_at[found.step]
        if seen.isdisjoint({Gradients.UNSCALED, Gradients.PLAIN}):
            yield found


def scalers(run: Run) -> list[Value]:
    """The scalers of a run that scale, step or update."""
    found: dict[Value, None] = {}
    for event in events(run.trace, EventKind.BACKWARD, *_SCALER_EVENTS):
        held = scaler_of(event) if event.kind is EventKind.BACKWARD else event.target
        found.update(dict.fromkeys(elements(held)))
    return [item for item in found if not isinstance(item, Constant)]


def _followed(run: Run) -> _Scaling:
    scaler_steps: set[object] = {event.node for event in events(run.trace, EventKind.SCALER_STEP)}
    protocol = _Scaling(scalers(run), scaler_steps)
    if any(scaler_of(event) is not None for event in events(run.trace, EventKind.BACKWARD)):
        follow(run.trace, protocol, _State())
    return protocol


def _is_off(scaler: Value) -> bool:
    found = [item for item in options(scaler) if isinstance(item, Object)]
    return bool(found) and all(_says(item, "enabled", False) for item in found)


def _says(made: Object, keyword: str, value: bool) -> bool:
    given = made.keywords.get(keyword)
    return isinstance(given, Constant) and given.value is value


_Stepped = frozenset[tuple[Value, Value]]


class _Updating(Protocol[_Stepped]):
    """The state: the optimizers that each scaler stepped since its last ``update``."""

    def __init__(self, found_scalers: list[Value], walked: set[Value]) -> None:
        self.repeated: dict[Event, None] = {}
        self._scalers = found_scalers
        self._walked = walked

    def watches(self, event: Event) -> bool:
        if event.kind is EventKind.OPAQUE:
            return may_touch(event, *self._scalers)
        if event.kind is EventKind.NEW:
            return event.target in self._scalers
        if event.kind is EventKind.SCALER_STEP:
            return bool(event.arguments) and not self._is_of_a_lap(event.arguments[0])
        return event.kind is EventKind.SCALER_UPDATE

    def _is_of_a_lap(self, optimizer: Value) -> bool:
        """Whether a loop binds the optimizer, or what it belongs to, anew on each lap."""
        for item in elements(optimizer):
            current: Value | None = item
            while current is not None:
                if current in self._walked:
                    return True
                current = current.parent if isinstance(current, Unknown) else None
        return False

    def event(self, state: _Stepped, event: Event) -> _Stepped:
        if event.kind is not EventKind.SCALER_STEP:
            return frozenset()
        assert event.target is not None
        key = (event.target, event.arguments[0])
        if key in state:
            self.repeated[event] = None
        return state | {key}


def steps_without_update(run: Run) -> Iterator[Event]:
    """Steps of a scaler that a loop repeats for the same optimizer, with no ``update`` in it."""
    if not any(True for _ in events(run.trace, EventKind.SCALER_STEP)):
        return
    protocol = _Updating(scalers(run), walked_elements(run.trace))
    follow(run.trace, protocol, frozenset())
    for event in protocol.repeated:
        loop = innermost_loop(run.trace, event)
        if loop is not None and not _updates(loop, event) and not _is_anothers_turn(event):
            yield event


def _is_anothers_turn(step: Event) -> bool:
    """Whether each lap takes its own optimizer out of a container: ``optimizers[name]``."""
    if not isinstance(step.node, ast.Call) or not step.node.args:
        return False
    given = step.node.args[0]
    return any(
        isinstance(value, ast.Subscript) and not isinstance(value.slice, ast.Constant)
        for value in (given, *assigned_values(step.file, given))
    )


def _updates(loop: Loop, step: Event) -> bool:
    return any(
        event.kind is EventKind.SCALER_UPDATE
        and (overlaps(event.target, step.target) or not isinstance(event.target, Object))
        for event in events(loop.body)
    )


def walked_elements(trace: Trace) -> set[Value]:
    """What the loops of a trace bind on each lap: one value for many objects."""
    found: set[Value] = set()
    for step in steps(trace):
        if isinstance(step, Loop) and step.element is not None:
            found.update(elements(step.element))
    return found
