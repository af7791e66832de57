"""Training steps inside scopes that switch autograd off."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.analysis.definitions import FunctionDefinition
from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.interpreter.scopes import GRAD_OFF, decorator_scopes
from trainlint.analysis.ownership import owners
from trainlint.analysis.protocols.gradients import optimizers
from trainlint.analysis.trace import Event, EventKind, Scope, Step, Trace, around, events
from trainlint.analysis.values import Instance, Tensor, elements

_SWITCHES = frozenset({"enable_grad", "set_grad_enabled", "maybe no_grad", "maybe enable_grad"})


def backwards_without_graph(run: Run) -> Iterator[tuple[Scope, Event]]:
    """Backward passes in a scope without gradients, which their forward passes are in as well."""
    for backward in events(run.trace, EventKind.BACKWARD):
        scope = switching_scope(around(run.trace, backward))
        if scope is None or scope.kind not in GRAD_OFF or not _has_no_graph(backward):
            continue
        forwards = list(events(scope.body, EventKind.FORWARD))
        if forwards and all(_is_off(scope.body, event) for event in forwards):
            yield scope, backward


def trained_without_graph(run: Run) -> Iterator[FunctionDefinition]:
    """Forward methods under a no-grad decorator, of networks that an optimizer steps."""
    if not any(True for _ in events(run.trace, EventKind.BACKWARD)):
        return
    for optimizer in optimizers(run):
        for owner in owners(optimizer):
            method = owner.definition.method("forward") if isinstance(owner, Instance) else None
            if method is not None and is_without_gradients(method):
                yield method


def is_without_gradients(function: FunctionDefinition) -> bool:
    """Whether the function's innermost decorator of that kind switches gradients off."""
    kinds = [kind for kind, _ in decorator_scopes(function) if kind != "autocast"]
    return bool(kinds) and kinds[-1] in GRAD_OFF


def switching_scope(way: list[Step]) -> Scope | None:
    """The innermost scope of those around a step that says something about gradients."""
    for step in reversed(way):
        if isinstance(step, Scope) and (step.kind in GRAD_OFF or step.kind in _SWITCHES):
            return step
    return None


def _is_off(body: Trace, event: Event) -> bool:
    scope = switching_scope(around(body, event))
    return scope is None or scope.kind in GRAD_OFF


def _has_no_graph(backward: Event) -> bool:
    found = list(elements(backward.target))
    return bool(found) and all(isinstance(item, Tensor) and not item.trains for item in found)
