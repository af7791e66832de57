"""Gradients that are cleared before the optimizer has used them."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.ownership import (
    may_touch,
    networks,
    only_uses_network,
    owners,
    reachable,
    trained_networks,
)
from trainlint.analysis.protocol import Protocol, follow
from trainlint.analysis.protocols.gradients import optimizers
from trainlint.analysis.roles import Role, has_role, owner_of_parameters
from trainlint.analysis.trace import Event, EventKind, events
from trainlint.analysis.values import Value, elements


class _Phase(enum.Enum):
    """``EMPTY``: something unknown was cleared. ``CLEARED``: gradients of a backward pass were."""

    NONE = "none"
    EMPTY = "empty"
    FRESH = "fresh"
    CLEARED = "cleared"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class LostGradients:
    """A ``zero_grad`` that throws away what ``backward`` computed for the ``step`` after it."""

    backward: Event
    zero_grad: Event
    step: Event


@dataclass(frozen=True)
class _State:
    phase: _Phase = _Phase.NONE
    backward: Event | None = None
    zero_grad: Event | None = None


class _Losing(Protocol[_State]):
    def __init__(self, optimizer: Value, alone: bool) -> None:
        self.found: dict[LostGradients, None] = {}
        self.seen_at: dict[Event, set[_Phase]] = {}
        self._optimizer = optimizer
        self._mine = set(elements(optimizer))
        self._owners = networks(owners(optimizer))
        self._alone = alone

    def watches(self, event: Event) -> bool:
        if event.kind is EventKind.OPAQUE:
            touches = may_touch(event, *self._mine, *self._owners)
            return touches and not only_uses_network(event, self._optimizer)
        return event.kind in (
            EventKind.BACKWARD,
            EventKind.GRADIENT,
            EventKind.ZERO_GRAD,
        ) or (event.kind is EventKind.STEP and self._is_mine(event.target))

    def event(self, state: _State, event: Event) -> _State:
        if event.kind is EventKind.BACKWARD:
            is_mine = self._alone or self._reaches(event.target)
            return _State(_Phase.FRESH if is_mine else _Phase.UNKNOWN, event)
        if event.kind in (EventKind.OPAQUE, EventKind.GRADIENT):
            return _State(_Phase.UNKNOWN)
        if event.kind is EventKind.ZERO_GRAD:
            return self._after_clearing(state, event)
        self.seen_at.setdefault(event, set()).add(state.phase)
        if state.phase is _Phase.CLEARED:
            assert state.backward is not None
            assert state.zero_grad is not None
            self.found[LostGradients(state.backward, state.zero_grad, event)] = None
        return _State()

    def _after_clearing(self, state: _State, event: Event) -> _State:
        if not isinstance(event.node, ast.Call):
            return _State(_Phase.UNKNOWN)
        if not self._clears_all(event.target):
            return state
        if state.phase is _Phase.UNKNOWN:
            return _State(_Phase.EMPTY)
        if state.phase is not _Phase.FRESH:
            return state
        return replace(state, phase=_Phase.CLEARED, zero_grad=event)

    def _is_mine(self, target: Value | None) -> bool:
        return any(item in self._mine for item in elements(target))

    def _clears_all(self, target: Value | None) -> bool:
        """The optimizer itself is cleared, or the one network whose parameters it moves."""
        if self._is_mine(target):
            return True
        is_network = has_role(target, Role.MODULE)
        cleared = networks(owner_of_parameters(item) for item in elements(target))
        return is_network and bool(self._owners) and self._owners <= cleared

    def _reaches(self, loss: Value | None) -> bool:
        return not reachable(self._owners).isdisjoint(trained_networks(loss))


def lost_gradients(run: Run) -> Iterator[LostGradients]:
    """All places of a run where an optimizer can only step on gradients that were cleared."""
    if not any(True for _ in events(run.trace, EventKind.BACKWARD)):
        return
    found = optimizers(run)
    for optimizer in found:
        protocol = _Losing(optimizer, alone=len(found) == 1)
        follow(run.trace, protocol, _State())
        for lost in protocol.found:
            if protocol.seen_at[lost.step] <= {_Phase.CLEARED, _Phase.EMPTY, _Phase.NONE}:
                yield lost
