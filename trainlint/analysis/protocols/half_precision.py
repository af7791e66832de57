"""Training in half precision without a loss scale."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.mixed_precision import HALF, OFF, autocast_around, is_autocast, precision
from trainlint.analysis.protocol import Protocol, follow
from trainlint.analysis.protocols.scaling import scaler_of, scalers
from trainlint.analysis.roles import Role, has_role
from trainlint.analysis.trace import Call, Event, EventKind, Loop, Scope, events


@dataclass(frozen=True)
class _State:
    """``inside``: the innermost autocast. ``forward`` and ``backward``: that of the last passes."""

    inside: Scope | None = None
    forward: Scope | None = None
    backward: Scope | None = None


class _HalfPrecision(Protocol[_State]):
    def __init__(self) -> None:
        self.trained: dict[Scope, None] = {}

    def watches(self, event: Event) -> bool:
        if event.kind is EventKind.FORWARD:
            return not has_role(event.target, Role.LOSS_FUNCTION)
        return event.kind in (EventKind.BACKWARD, EventKind.STEP)

    def enter(self, state: _State, step: Scope | Call | Loop) -> _State:
        is_inside = isinstance(step, Scope) and is_autocast(step)
        return replace(state, inside=step) if is_inside else state  # type: ignore[arg-type]

    def leave(self, outside: _State, inside: _State, step: Scope | Call | Loop) -> _State:
        return replace(inside, inside=outside.inside)

    def event(self, state: _State, event: Event) -> _State:
        if event.kind is EventKind.FORWARD:
            if state.inside is not None and precision(state.inside) == OFF:
                return state
            is_half = state.inside is not None and precision(state.inside) == HALF
            return replace(state, forward=state.inside if is_half else None)
        if event.kind is EventKind.BACKWARD:
            return replace(state, backward=state.forward if _is_plain(event) else None)
        if state.backward is not None:
            self.trained[state.backward] = None
        return replace(state, backward=None)


def unscaled_half_precision(run: Run) -> Iterator[Scope]:
    """The float16 autocast scopes of a run whose loss is trained on without any scaler."""
    if scalers(run) or any(True for _ in events(run.trace, EventKind.SCALER_UPDATE)):
        return
    if not any(True for _ in autocast_around(run.trace, EventKind.FORWARD)):
        return
    protocol = _HalfPrecision()
    follow(run.trace, protocol, _State())
    yield from protocol.trained


def _is_plain(backward: Event) -> bool:
    """``loss.backward()``; engines and accelerators scale the loss that they are given."""
    node = backward.node
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return is_method and not node.args and scaler_of(backward) is None  # type: ignore[attr-defined]
