"""Gradients that are looked at and cleared again, such as those of a heat map in an evaluation."""

from __future__ import annotations

from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.ownership import are_apart, networks
from trainlint.analysis.protocol import Protocol, follow
from trainlint.analysis.roles import Role, has_role
from trainlint.analysis.trace import Event, EventKind
from trainlint.analysis.values import Value, elements

# The optimizers that have cleared since the backward pass; None while it has left nothing.
_Cleared = frozenset[Value] | None


class _Use(Protocol[_Cleared]):
    def __init__(self, backward: Event, model: Value) -> None:
        self.is_used = False
        self.is_stepped = False
        self._backward = backward
        self._model = model

    def watches(self, event: Event) -> bool:
        if event.kind is EventKind.BACKWARD:
            return event.node is self._backward.node
        if event.kind not in (EventKind.STEP, EventKind.ZERO_GRAD):
            return False
        return event.target is None or not are_apart(event.target, self._model)

    def event(self, state: _Cleared, event: Event) -> _Cleared:
        if event.kind is EventKind.BACKWARD:
            return frozenset()
        subjects = frozenset(elements(event.target))
        if event.kind is EventKind.STEP:
            self.is_stepped = True
            self.is_used = self.is_used or (
                state is not None and (not subjects or not subjects <= state)
            )
            return state
        if state is None or self._is_model(event.target):
            return None
        return state | subjects

    def _is_model(self, cleared: Value | None) -> bool:
        mine = networks(elements(self._model))
        return has_role(cleared, Role.MODULE) and mine <= networks(elements(cleared))


def is_discarded(run: Run, backward: Event, model: Value) -> bool:
    """Whether optimizers step ``model``, but never on what ``backward`` left: it is cleared first.

    False where no step of the model's is in sight: somebody else may take it.
    """
    use = _Use(backward, model)
    follow(run.trace, use, None)
    return use.is_stepped and not use.is_used
