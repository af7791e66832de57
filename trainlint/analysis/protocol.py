"""Follows every path of a trace with a small automaton; loops are taken twice around.

A rule about order says what its state is and how events change it. The runner forks at branches,
joins after them, drops paths that contradict a condition they already took (``if use_amp:``
twice), and goes twice around each loop so that the second lap sees what the first left behind.
A loop is assumed to run at least once: a loop that clears gradients clears them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from trainlint.analysis.trace import (
    Assumptions,
    Attempt,
    Branch,
    Call,
    Condition,
    Event,
    Jump,
    Loop,
    Outcome,
    Scope,
    Trace,
    parts,
    steps,
)

State = TypeVar("State", bound=Hashable)
Taken = frozenset[tuple[Condition, Outcome]]
_MAX_PATHS = 128
_LAPS = 2


class Protocol(ABC, Generic[State]):
    """The automaton of one rule. States are hashable and small.

    ``patience`` is how many more steps it is willing to take on all paths together. When that is
    used up the rest of the trace is left unread: what has been seen until then did happen.
    """

    patience = 100_000

    @abstractmethod
    def watches(self, event: Event) -> bool:
        """Whether an event can matter at all. Asked once for each event; the rest is skipped."""

    @abstractmethod
    def event(self, state: State, event: Event) -> State:
        """The state after an event that the automaton watches."""

    def enter(self, state: State, step: Scope | Call | Loop) -> State:
        """The state inside a scope, a call or a lap of a loop."""
        return state

    def leave(self, outside: State, inside: State, step: Scope | Call | Loop) -> State:
        """The state after a scope, a call or a whole loop; ``outside`` is what it was before."""
        return inside


@dataclass
class _Outcome(Generic[State]):
    normal: set[tuple[State, Taken]]
    jumps: dict[Jump, set[tuple[State, Taken]]] = field(default_factory=dict)

    def jumped(self, jump: Jump) -> set[tuple[State, Taken]]:
        return self.jumps.get(jump, set())

    def take_jumps(self, other: _Outcome[State], *but: Jump) -> None:
        for jump, paths in other.jumps.items():
            if jump not in but:
                self.jumps.setdefault(jump, set()).update(paths)


class _OutOfPatienceError(Exception):
    """A protocol has taken as many steps as it is willing to."""


def follow(trace: Trace, protocol: Protocol[State], start: State) -> set[State]:
    """Run the automaton over all paths; the states in which the trace can end."""
    try:
        outcome = _run(_pruned(trace, protocol), protocol, {(start, frozenset())})
    except _OutOfPatienceError:
        return set()
    ends = set(outcome.normal)
    for paths in outcome.jumps.values():
        ends |= paths
    return {state for state, _ in ends}


def _pruned(trace: Trace, protocol: Protocol[State]) -> Trace:
    """The trace without what the automaton does not watch, and without calls left empty by that."""
    kept: Trace = []
    for step in trace:
        if isinstance(step, Event):
            if protocol.watches(step):
                kept.append(step)
        elif isinstance(step, Jump):
            kept.append(step)
        else:
            smaller = _pruned_step(step, protocol)
            if smaller is not None:
                kept.append(smaller)
    return kept


def _pruned_step(
    step: Branch | Loop | Call | Scope | Attempt, protocol: Protocol[State]
) -> Branch | Loop | Call | Scope | Attempt | None:
    if isinstance(step, Branch):
        ways = [(assumed, _pruned(trace, protocol)) for assumed, trace in step.ways]
        return Branch(step.node, ways) if any(trace for _, trace in ways) else None
    if isinstance(step, Attempt):
        handlers = [_pruned(trace, protocol) for trace in step.handlers]
        attempt = Attempt(
            _pruned(step.body, protocol),
            handlers,
            _pruned(step.orelse, protocol),
            _pruned(step.final, protocol),
        )
        return attempt if any(parts(attempt)) else None
    body = _pruned(step.body, protocol)
    if isinstance(step, Loop):
        orelse = _pruned(step.orelse, protocol)
        if not _does_anything(body) and not orelse:
            return None
        return replace(step, body=body, orelse=orelse, original=step.original or step)
    if isinstance(step, Call) and not _does_anything(body):
        return None
    return replace(step, body=body) if body else None


def _does_anything(trace: Trace) -> bool:
    """Whether more than jumps is left: a call or a loop with jumps alone changes nothing."""
    return any(isinstance(step, Event) for step in steps(trace))


def _run(
    trace: Trace, protocol: Protocol[State], paths: set[tuple[State, Taken]]
) -> _Outcome[State]:
    outcome = _Outcome(paths)
    for step in trace:
        if not outcome.normal:
            break
        protocol.patience -= len(outcome.normal)
        if protocol.patience < 0:
            raise _OutOfPatienceError
        if isinstance(step, Event):
            outcome.normal = {
                (protocol.event(state, step), taken) for state, taken in outcome.normal
            }
        elif isinstance(step, Jump):
            outcome.jumps.setdefault(step, set()).update(outcome.normal)
            outcome.normal = set()
        else:
            inner = _enter(step, protocol, outcome.normal)
            outcome.normal = _bounded(inner.normal)
            outcome.take_jumps(inner)
    return outcome


def _enter(
    step: Branch | Loop | Call | Scope | Attempt,
    protocol: Protocol[State],
    paths: set[tuple[State, Taken]],
) -> _Outcome[State]:
    if isinstance(step, Branch):
        return _branch(step, protocol, paths)
    if isinstance(step, Loop):
        return _each_start(step, protocol, paths, _loop)
    if isinstance(step, Call):
        return _each_start(step, protocol, paths, _call)
    if isinstance(step, Scope):
        return _each_start(step, protocol, paths, _scope)
    return _attempt(step, protocol, paths)


def _branch(
    step: Branch, protocol: Protocol[State], paths: set[tuple[State, Taken]]
) -> _Outcome[State]:
    outcome: _Outcome[State] = _Outcome(set())
    for assumed, trace in step.ways:
        feasible = {
            (state, now) for state, taken in paths if (now := _assume(taken, assumed)) is not None
        }
        inner = _run(trace, protocol, feasible)
        outcome.normal |= inner.normal
        outcome.take_jumps(inner)
    return outcome


def _assume(taken: Taken, assumed: Assumptions) -> Taken | None:
    """The conditions of a path after some more; None if they contradict each other."""
    known = {condition.key: outcome for condition, outcome in taken}
    for condition, outcome in assumed:
        if known.setdefault(condition.key, outcome) != outcome:
            return None
    return taken.union(assumed)


def _each_start(  # type: ignore[no-untyped-def]
    step, protocol: Protocol[State], paths: set[tuple[State, Taken]], run
) -> _Outcome[State]:
    """Paths that enter in one state run together; ``leave`` sees the state that they came from."""
    outcome: _Outcome[State] = _Outcome(set())
    by_state: dict[State, set[tuple[State, Taken]]] = {}
    for state, taken in paths:
        by_state.setdefault(state, set()).add((protocol.enter(state, step), taken))
    for before, entered in by_state.items():
        inner = run(step, protocol, entered)
        outcome.normal |= {
            (protocol.leave(before, state, step), taken) for state, taken in inner.normal
        }
        for jump, jumped in inner.jumps.items():
            outcome.jumps.setdefault(jump, set()).update(
                (protocol.leave(before, state, step), taken) for state, taken in jumped
            )
    return outcome


def _loop(
    step: Loop, protocol: Protocol[State], paths: set[tuple[State, Taken]]
) -> _Outcome[State]:
    outcome: _Outcome[State] = _Outcome(set())
    current = paths
    for _ in range(_LAPS):
        inner = _run(step.body, protocol, _on_new_lap(current, step))
        outcome.take_jumps(inner, Jump.BREAK, Jump.CONTINUE)
        current = _bounded(inner.normal | inner.jumped(Jump.CONTINUE))
        outcome.normal |= inner.jumped(Jump.BREAK)
        finished = _run(step.orelse, protocol, current)
        outcome.normal |= finished.normal
        outcome.take_jumps(finished)
    return outcome


def _on_new_lap(paths: Iterable[tuple[State, Taken]], loop: Loop) -> set[tuple[State, Taken]]:
    """Questions about what the loop changes are asked anew."""
    return {
        (
            state,
            frozenset(
                (condition, outcome)
                for condition, outcome in taken
                if not condition.volatile and condition.birth < loop.start
            ),
        )
        for state, taken in paths
    }


def _call(
    step: Call, protocol: Protocol[State], paths: set[tuple[State, Taken]]
) -> _Outcome[State]:
    inner = _run(step.body, protocol, paths)
    outcome = _Outcome(inner.normal | inner.jumped(Jump.RETURN))
    outcome.take_jumps(inner, Jump.RETURN)
    return outcome


def _scope(
    step: Scope, protocol: Protocol[State], paths: set[tuple[State, Taken]]
) -> _Outcome[State]:
    return _run(step.body, protocol, paths)


def _attempt(
    step: Attempt, protocol: Protocol[State], paths: set[tuple[State, Taken]]
) -> _Outcome[State]:
    body = _run(step.body, protocol, paths)
    outcome = _run(step.orelse, protocol, body.normal)
    outcome.take_jumps(body, *((Jump.RAISE,) if step.handlers else ()))
    # An error that is raised and caught here is followed only where nothing else leads on.
    interrupted = paths | (body.normal or body.jumped(Jump.RAISE))
    for handler in step.handlers:
        handled = _run(handler, protocol, interrupted)
        outcome.normal |= handled.normal
        outcome.take_jumps(handled)
    if not step.final:
        return outcome
    final = _run(step.final, protocol, outcome.normal)
    for jump, jumped in outcome.jumps.items():
        through = _run(step.final, protocol, jumped)
        final.jumps.setdefault(jump, set()).update(through.normal)
        final.take_jumps(through)
    return final


def _bounded(paths: set[tuple[State, Taken]]) -> set[tuple[State, Taken]]:
    """So many paths that conditions are forgotten: then states are all that is kept apart."""
    if len(paths) <= _MAX_PATHS:
        return paths
    return {(state, frozenset()) for state, _ in paths}
