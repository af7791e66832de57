"""Gradients that a statement switches off, and that nobody switches on again before training."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.protocol import Protocol, follow
from trainlint.analysis.trace import Call, Event, EventKind, Loop, Scope, events
from trainlint.analysis.values import Constant

_GRADIENT_SCOPES = ("no_grad", "inference_mode", "enable_grad", "set_grad_enabled")


class _Switch(Protocol["Event | None"]):
    """The state is the statement that switched gradients off, if they are off."""

    def __init__(self) -> None:
        self.found: dict[Event, Event] = {}

    def watches(self, event: Event) -> bool:
        return event.kind in (EventKind.GRAD_MODE, EventKind.BACKWARD)

    def event(self, state: Event | None, event: Event) -> Event | None:
        if event.kind is EventKind.GRAD_MODE:
            return event if _is_off(event) else None
        if state is not None:
            self.found.setdefault(state, event)
        return state

    def enter(self, state: Event | None, step: Scope | Call | Loop) -> Event | None:
        return None if _sets_gradients(step) else state

    def leave(
        self, outside: Event | None, inside: Event | None, step: Scope | Call | Loop
    ) -> Event | None:
        return outside if _sets_gradients(step) else inside


def switched_off_and_trained(run: Run) -> Iterator[tuple[Event, Event]]:
    """The statements of a run that switch gradients off, each with a backward pass that follows."""
    if any(map(_is_off, events(run.trace, EventKind.GRAD_MODE))):
        protocol = _Switch()
        follow(run.trace, protocol, None)
        yield from protocol.found.items()


def _is_off(event: Event) -> bool:
    return isinstance(event.target, Constant) and not event.target.value


def _sets_gradients(step: Scope | Call | Loop) -> bool:
    return isinstance(step, Scope) and step.kind.removeprefix("maybe ") in _GRADIENT_SCOPES
