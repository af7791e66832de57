"""Where gradients are clipped: between the backward pass and the step, or where it is lost."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.ownership import are_apart, may_touch, owners
from trainlint.analysis.protocol import Protocol, follow
from trainlint.analysis.protocols.gradients import innermost_loop, optimizers
from trainlint.analysis.roles import owner_of_parameters
from trainlint.analysis.trace import Branch, Event, EventKind, Loop, Scope, around, events, test_of
from trainlint.analysis.values import Object, Parameters, Value, elements

_COMPLETE = re.compile(r"%|sync_|boundary|(do|should)_?(step|update)|is_?last", re.IGNORECASE)
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
            return _State(FRESH if _writes_gradient(event) else CLEARED)
        return _State(FRESH)


def lost_clips(run: Run) -> Iterator[LostClip]:
    """Clips of a run that come after the step, or before the backward pass, on every path."""
    clips = list(events(run.trace, EventKind.CLIP))
    stepping = optimizers(run) if clips else []
    for optimizer in stepping:
        mine = {clip for clip in clips if _is_about(run, clip, optimizer, stepping)}
        if not mine:
            continue
        protocol = _Placing(optimizer, mine)
        follow(run.trace, protocol, _State())
        for clip, states in protocol.clips.items():
            found = {state.gradients for state in states}
            if FRESH not in found and found != {ENTRY}:
                steps = [state.step for state in states if state.step is not None]
                yield LostClip(clip, steps[0] if steps else None)


def _writes_gradient(event: Event) -> bool:
    """``p.grad = ...`` and ``p.grad *= scale`` may give other gradients instead of clearing."""
    return isinstance(event.node, ast.Attribute)


_Awaiting = tuple[str, Event | None]


class _Using(Protocol[_Awaiting]):
    """The state: whether a clip awaits its step, and another optimizer's step that came instead."""

    def __init__(self, clip: Event, target: Value) -> None:
        self.is_used = False
        self.instead: Event | None = None
        self._clip = clip
        self._target = target
        self._subjects = (*_clipped(clip), *elements(target))

    def watches(self, event: Event) -> bool:
        if event.kind is EventKind.OPAQUE:
            return may_touch(event, *self._subjects)
        if event.kind is EventKind.ZERO_GRAD:
            return not self._is_apart(event)
        return event is self._clip or event.kind is EventKind.STEP

    def event(self, state: _Awaiting, event: Event) -> _Awaiting:
        if event is self._clip:
            return ("awaits", None)
        if event.kind is EventKind.ZERO_GRAD and not _writes_gradient(event):
            self.instead = self.instead or state[1]
            return ("", None)
        if event.kind is EventKind.STEP and self._is_apart(event):
            return (state[0], state[1] or event) if state[0] else state
        self.is_used = self.is_used or bool(state[0])
        return ("", None)

    def _is_apart(self, event: Event) -> bool:
        return event.target is not None and are_apart(event.target, self._target)


def foreign_clips(run: Run) -> Iterator[LostClip]:
    """Clips of gradients that are cleared unused: ``step`` moves another network instead."""
    for clip in events(run.trace, EventKind.CLIP):
        if clip.target is None or len(optimizers(run)) < 2:
            continue
        protocol = _Using(clip, clip.target)
        follow(run.trace, protocol, ("", None))
        if protocol.instead is not None and not protocol.is_used:
            yield LostClip(clip, protocol.instead)


def _is_about(run: Run, clip: Event, optimizer: Value, stepping: list[Value]) -> bool:
    """Whether a clip is of the parameters that this one of the stepping optimizers moves."""
    target = clip.target
    if target is None:
        return False
    if (owners(optimizer) | {optimizer}) & _clipped(clip):
        return True
    possible = [item for item in stepping if not are_apart(target, item)]
    places = [_step_places(run, item) for item in possible]
    return optimizer in possible and all(place == places[0] for place in places)


def _step_places(run: Run, optimizer: Value) -> set[ast.AST]:
    """Where an optimizer steps: alternatives of one variable step at the same places."""
    taken = events(run.trace, EventKind.STEP)
    return {event.node for event in taken if event.target is optimizer}


def _clipped(clip: Event) -> set[Value]:
    """The modules whose gradients are clipped."""
    return {
        owner_of_parameters(item) for item in elements(clip.target) if isinstance(item, Parameters)
    }


@dataclass(frozen=True)
class PartialClip:
    """A clip that every micro-batch repeats before one ``step`` uses their sum."""

    clip: Event
    step: Event


_Repeats = tuple[bool, bool]


class _Repeating(Protocol[_Repeats]):
    """The state: clipped since the last step, and another backward pass came after that."""

    def __init__(self, clip: Event) -> None:
        self.is_repeated = False
        self._clip = clip
        self._subjects = (*_clipped(clip), *elements(clip.target))

    def watches(self, event: Event) -> bool:
        if event.kind in (EventKind.STEP, EventKind.ZERO_GRAD):
            return event.target is None or not self._is_apart(event.target)
        if event.kind is EventKind.OPAQUE:
            return may_touch(event, *self._subjects)
        return event is self._clip or event.kind is EventKind.BACKWARD

    def event(self, state: _Repeats, event: Event) -> _Repeats:
        if event is self._clip:
            self.is_repeated = self.is_repeated or state == (True, True)
            return (True, False)
        return (state[0], True) if event.kind is EventKind.BACKWARD else (False, False)

    def _is_apart(self, target: Value) -> bool:
        return self._clip.target is not None and are_apart(target, self._clip.target)


def partial_clips(run: Run) -> Iterator[PartialClip]:
    """Clips of a run that some path repeats, with a backward pass in between, before a step."""
    for clip in events(run.trace, EventKind.CLIP):
        loop = innermost_loop(run.trace, clip)
        if loop is None or clip.target is None:
            continue
        if _waits_for_gradients(loop, clip):
            continue
        protocol = _Repeating(clip)
        watched = [event for event in events(loop.body) if protocol.watches(event)]
        step = next((event for event in watched if event.kind is EventKind.STEP), None)
        is_cleared = any(event.kind is EventKind.ZERO_GRAD for event in watched)
        if step is not None and is_cleared:
            follow(run.trace, protocol, (False, False))
            if protocol.is_repeated:
                yield PartialClip(clip, step)


def _waits_for_gradients(loop: Loop, clip: Event) -> bool:
    """Whether the clip itself stands under the question whether gradients are complete."""
    return any(
        isinstance(step, Branch) and _COMPLETE.search(test_of(step))
        for step in around(loop.body, clip)
    )


def clips_of_each_microbatch(run: Run) -> Iterator[tuple[Event, Scope]]:
    """Clips under ``accelerator.accumulate`` that do not ask whether gradients are complete."""
    for clip in events(run.trace, EventKind.CLIP):
        way = around(run.trace, clip)
        scopes = [item for item in way if isinstance(item, Scope) and item.kind == "accumulate"]
        if not scopes or not _accumulates(run):
            continue
        inside = way[way.index(scopes[-1]) :]
        if not any(isinstance(item, Branch) and "sync_" in test_of(item) for item in inside):
            yield clip, scopes[-1]


def _accumulates(run: Run) -> bool:
    """An Accelerator made without a number of steps accumulates nothing."""
    made = [
        event.target
        for event in events(run.trace, EventKind.NEW)
        if isinstance(event.target, Object) and event.target.dotted.endswith(".Accelerator")
    ]
    return not made or any(
        name.startswith("gradient_accumulation") or name == "**"
        for item in made
        for name in item.keywords
    )
