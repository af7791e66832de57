"""Where gradients are clipped: between the backward pass and the step, or where it is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.ownership import are_apart, may_touch, owners
from trainlint.analysis.protocol import Protocol, follow
from trainlint.analysis.protocols.gradients import optimizers
from trainlint.analysis.roles import owner_of_parameters
from trainlint.analysis.trace import Event, EventKind, events
from trainlint.analysis.values import Parameters, Value, elements

ENTRY, FRESH, STEPPED, CLEARED = "entry", "fresh", "stepped", "cleared"


@dataclass(frozen=True)
class LostClip:
    """A clip that no step ever uses: ``step`` came before it, or ``zero_grad`` did (then None)."""

    clip: Event
    step: Event | None


@dataclass(frozen=True)
class _State:
    """``gradients``: fresh from a backward pass, used by a step, or cleared."""

    gradients: str = ENTRY
    step: Event | None = None


class _Placing(Protocol[_State]):
    """Follows the gradients of one optimizer to the places where they are clipped."""

    def __init__(self, optimizer: Value, clips: set[Event]) -> None:
        self.clips: dict[Event, set[_State]] = {}
        self._optimizer = optimizer
        self._mine = set(elements(optimizer))
        self._clips = clips
        clipped = (owner for clip in clips for owner in _clipped(clip))
        self._subjects = (optimizer, *owners(optimizer), *clipped)

    def watches(self, event: Event) -> bool:
        kind = event.kind
        if kind in (EventKind.BACKWARD, EventKind.GRADIENT):
            return True
        if kind is EventKind.STEP:
            return any(item in self._mine for item in elements(event.target))
        if kind is EventKind.ZERO_GRAD:
            return event.target is not None and not are_apart(event.target, self._optimizer)
        if kind is EventKind.OPAQUE:
            return may_touch(event, *self._subjects)
        return event in self._clips

    def event(self, state: _State, event: Event) -> _State:
        kind = event.kind
        if kind is EventKind.CLIP:
            self.clips.setdefault(event, set()).add(state)
            return state
        if kind is EventKind.STEP:
            return _State(STEPPED, event) if state.gradients is FRESH else state
        if kind is EventKind.ZERO_GRAD:
            return _State(CLEARED)
        return _State(FRESH)


def lost_clips(run: Run) -> Iterator[LostClip]:
    """Clips of a run that come after the step, or before the backward pass, on every path."""
    clips = list(events(run.trace, EventKind.CLIP))
    stepping = optimizers(run) if clips else []
    for optimizer in stepping:
        mine = {clip for clip in clips if _is_about(clip, optimizer, only=len(stepping) == 1)}
        if not mine:
            continue
        protocol = _Placing(optimizer, mine)
        follow(run.trace, protocol, _State())
        for clip, states in protocol.clips.items():
            found = {state.gradients for state in states}
            if FRESH not in found and found != {ENTRY}:
                steps = [state.step for state in states if state.step is not None]
                yield LostClip(clip, steps[0] if steps else None)


def _is_about(clip: Event, optimizer: Value, *, only: bool) -> bool:
    """Whether a clip is of the parameters that the optimizer moves."""
    if clip.target is None:
        return False
    held = owners(optimizer)
    if clip.target is optimizer or held & _clipped(clip):
        return True
    return only and not are_apart(clip.target, optimizer)


def _clipped(clip: Event) -> set[Value]:
    """The modules whose gradients are clipped."""
    return {
        owner_of_parameters(item)
        for item in elements(clip.target)
        if isinstance(item, Parameters)
    }
