"""Train and eval mode, and gradients on and off, at every forward pass of a model."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainlint.analysis.callers import callers
from trainlint.analysis.file_model import FileModel
from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.interpreter.scopes import GRAD_OFF
from trainlint.analysis.knowledge.training import sounds_like_evaluation, sounds_like_training
from trainlint.analysis.ownership import may_touch, reachable
from trainlint.analysis.protocol import Protocol, follow
from trainlint.analysis.roles import Role, has_role, unwrapped
from trainlint.analysis.trace import Call, Event, EventKind, Loop, Scope, Step, Trace, parts, steps
from trainlint.analysis.values import Constant, Instance, Object, Tensor, Unknown, Value, elements

TRAIN, EVAL, ENTRY, UNKNOWN = "train", "eval", "entry", "unknown"


@dataclass(frozen=True)
class Moment:
    """What holds at one point of a path, for one model.

    ``mode``: ``train``, ``eval``, ``entry`` (as the caller left it) or ``unknown`` (something
    unresolved may have changed it). ``switch`` is the event that set it, ``evaluated`` whether
    the model has run as an evaluation since. ``gradients``: on, off, or None for unknown.
    """

    mode: str
    switch: Event | None = None
    evaluated: bool = False
    gradients: bool | None = True
    loop: Loop | None = None
    call: Call | None = None


@dataclass(frozen=True)
class ForwardPass:
    """A model's forward pass at a moment, in a run."""

    run: Run
    model: Value
    event: Event
    moment: Moment


@dataclass(frozen=True)
class TrainedInEval:
    """A training step on a model that an evaluation left in eval mode."""

    model: Value
    switch: Event
    backward: Event


class _Modes(Protocol[Moment]):
    def __init__(self, run: Run, model: Value) -> None:
        self.run = run
        self.model = model
        self.same = set(elements(model)) | {unwrapped(item) for item in elements(model)}
        self.effects: dict[Event, str] = {}
        self.passes: dict[tuple[Event, Moment], None] = {}
        self.trained: dict[tuple[Event, Event], None] = {}

    def watches(self, event: Event) -> bool:
        effect = self._effect(event)
        if effect is not None:
            self.effects[event] = effect
        return effect is not None

    def event(self, state: Moment, event: Event) -> Moment:
        effect = self.effects[event]
        if effect == "forward":
            self.passes[(event, state)] = None
            evaluates = state.mode == EVAL and state.gradients is not True
            return replace(state, evaluated=state.evaluated or evaluates)
        if effect == "gradients":
            return replace(state, gradients=_as_flag(event.target))
        if effect == "backward":
            if state.mode == EVAL and state.evaluated and state.switch is not None:
                self.trained[(state.switch, event)] = None
            return state
        switch = event if effect in (TRAIN, EVAL) and event.kind is not EventKind.NEW else None
        return replace(state, mode=effect, switch=switch, evaluated=False)

    def _effect(self, event: Event) -> str | None:
        """The mode that an event sets, or what else it does to the state; None for nothing."""
        kind, target = event.kind, event.target
        if kind is EventKind.FORWARD:
            return "forward" if self._is_model(target) else None
        if kind is EventKind.EVAL:
            return EVAL if self._is_related(target) else None
        if kind is EventKind.TRAIN and self._contains_model(target):
            return TRAIN
        if kind in (EventKind.TRAIN, EventKind.MODE):
            return UNKNOWN if self._is_related(target) else None
        if kind is EventKind.NEW:
            return _initial_mode(target) if target in self.same else None
        if kind is EventKind.GRAD_MODE:
            return "gradients"
        if kind is EventKind.OPAQUE:
            return UNKNOWN if self._may_switch(event) else None
        if kind is EventKind.BACKWARD:
            return "backward" if self._is_trained_by(event) else None
        return None

    def enter(self, state: Moment, step: Scope | Call | Loop) -> Moment:
        if isinstance(step, Scope):
            return replace(state, gradients=_inside_scope(step, state.gradients))
        if isinstance(step, Loop):
            return replace(state, loop=step)
        return replace(state, call=step)

    def leave(self, outside: Moment, inside: Moment, step: Scope | Call | Loop) -> Moment:
        if isinstance(step, Scope):
            return replace(inside, gradients=outside.gradients)
        if isinstance(step, Loop):
            return replace(inside, loop=outside.loop)
        return replace(inside, call=outside.call)

    def _is_model(self, target: Value | None) -> bool:
        return any(item in self.same or unwrapped(item) in self.same for item in elements(target))

    def _contains_model(self, target: Value | None) -> bool:
        return self._is_model(target) or bool(
            self.same & reachable([unwrapped(item) for item in elements(target)])
        )

    def _is_related(self, target: Value | None) -> bool:
        """The model, something that holds it, a part of it, or its neighbour in one container."""
        if self._contains_model(target):
            return True
        targets = {unwrapped(item) for item in elements(target)}
        if targets & reachable(self.same):
            return True
        parents = {item.parent for item in self.same if isinstance(item, Unknown) and item.parent}
        return any(isinstance(item, Unknown) and item.parent in parents for item in targets)

    def _may_switch(self, event: Event) -> bool:
        if not may_touch(event, *self.same):
            return False
        node = event.node
        is_own_method = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and self._is_model(event.target)
        )
        if not is_own_method:
            return True
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        name = node.func.attr.lower()
        return any(word in name for word in ("eval", "train", "mode", "test", "prepare"))

    def _is_trained_by(self, backward: Event) -> bool:
        loss = backward.target
        known = [item for item in elements(loss) if isinstance(item, Tensor) and item.trains]
        if not known:
            return True
        return any(self._is_model(module) for item in known for module in item.trains)


def forward_passes(run: Run) -> Iterator[ForwardPass]:
    """Every forward pass of every top-level model of a run, with each moment it happens at."""
    for protocol in _followed(run):
        for event, moment in protocol.passes:
            yield ForwardPass(run, protocol.model, event, moment)


def trained_in_eval(run: Run) -> Iterator[TrainedInEval]:
    """Every training step of a run on a model that an evaluation left in eval mode."""
    for protocol in _followed(run):
        for switch, backward in protocol.trained:
            yield TrainedInEval(protocol.model, switch, backward)


def _followed(run: Run) -> list[_Modes]:
    if run.modes is None:
        run.modes = []
        for model in _models(run):
            protocol = _Modes(run, model)
            follow(run.trace, protocol, Moment(ENTRY))
            run.modes.append(protocol)
    return run.modes  # type: ignore[return-value]


def _models(run: Run) -> list[Value]:
    """What is called as a model by training code, not the layers inside."""
    found: dict[Value, Value] = {}
    for event in _outer_forwards(run.trace):
        if event.target is not None and has_role(event.target, Role.MODULE):
            found.setdefault(unwrapped(event.target), event.target)
    return list(found.values())


def _outer_forwards(trace: Trace) -> Iterator[Event]:
    for step in trace:
        if isinstance(step, Event) and step.kind is EventKind.FORWARD:
            yield step
        if not is_forward(step):
            for part in parts(step):
                yield from _outer_forwards(part)


def is_forward(step: Step) -> bool:
    """Whether a step is the inside of a module's forward pass."""
    if not isinstance(step, Call) or step.function.owner is None:
        return False
    return step.function.name == "forward" and step.function.owner.is_module


def is_evaluation(found: ForwardPass) -> bool:
    """Whether a forward pass belongs to an evaluation: by its loader, function and use."""
    loop = found.moment.loop
    if loop is None or _trains(loop):
        return False
    names = [_name(loop.iterated)]
    if isinstance(loop.node, (ast.For, ast.AsyncFor)):
        names.append(ast.unparse(loop.node.iter))
    if any(sounds_like_training(name) for name in names):
        return False
    if not any(has_role(item, Role.LOADER) or _is_batches(item) for item in _iterated(loop)):
        return False
    if any(sounds_like_evaluation(name) for name in names):
        return True
    function = found.moment.call.function if found.moment.call else None
    return function is not None and sounds_like_evaluation(function.name)


def _trains(loop: Loop) -> bool:
    kinds = {EventKind.BACKWARD, EventKind.STEP, EventKind.ZERO_GRAD}
    whole = loop.original or loop
    return any(isinstance(step, Event) and step.kind in kinds for step in steps(whole.body))


def _iterated(loop: Loop) -> Iterator[Value]:
    for item in elements(loop.iterated):
        yield item
        if isinstance(item, Object) and item.dotted in ("builtins.enumerate", "builtins.zip"):
            for argument in item.arguments:
                yield from elements(argument)


def _is_batches(value: Value) -> bool:
    return isinstance(value, Instance) and value.definition.name.endswith(("Loader", "Dataset"))


def _name(value: Value | None) -> str:
    names = [item.hint for item in elements(value)]
    return names[0] if names else ""


def _initial_mode(model: Value | None) -> str:
    """Modules are made in train mode; ``from_pretrained`` hands them out in eval mode."""
    if isinstance(model, Object):
        last = model.dotted.rpartition(".")[2]
        if last == "from_pretrained" or model.copy_of is not None:
            return UNKNOWN
        return TRAIN if model.dotted.startswith("torch") else UNKNOWN
    return TRAIN


def _as_flag(value: Value | None) -> bool | None:
    return bool(value.value) if isinstance(value, Constant) else None


def _inside_scope(scope: Scope, outside: bool | None) -> bool | None:
    if scope.kind in GRAD_OFF:
        return False
    if scope.kind == "enable_grad":
        return True
    unsure = scope.kind == "set_grad_enabled" or scope.kind.startswith("maybe ")
    return None if unsure and scope.kind != "maybe autocast" else outside


def contexts(file: FileModel) -> list[tuple[Run, bool]]:
    """The runs that reach the file's code, and whether a run's start is really a start.

    A function that other files call is seen as they call it. False stands for a function that
    somebody calls in a way that the model cannot follow: what it starts with is unknown.
    """
    found: list[tuple[Run, bool]] = []
    for run in file.runs:
        outside = callers(run)
        if outside is None:
            found.append((run, False))
        elif outside:
            found.extend((item, True) for item in outside)
        else:
            found.append((run, True))
    return found
