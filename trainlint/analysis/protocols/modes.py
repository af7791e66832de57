"""Train and eval mode, and gradients on and off, at every forward pass of a model."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.interpreter.scopes import GRAD_OFF
from trainlint.analysis.knowledge.training import sounds_like_evaluation
from trainlint.analysis.loop_names import names_of_iterated
from trainlint.analysis.ownership import are_apart, reachable
from trainlint.analysis.protocol import Protocol, follow
from trainlint.analysis.roles import Role, has_role, unwrapped
from trainlint.analysis.trace import Call, Event, EventKind, Loop, Scope, Step, Trace, events, parts
from trainlint.analysis.values import Constant, Object, Unknown, Value, elements

TRAIN, EVAL, ENTRY, UNKNOWN = "train", "eval", "entry", "unknown"
_MADE_IN_TRAIN_MODE = (
    "torch.nn.",
    "torchvision.models.",
    "timm.",
    "torch_geometric.nn.",
    "segmentation_models_pytorch.",
)
_DIFFERENTIATES = frozenset({EventKind.BACKWARD, EventKind.GRADIENT})
_LEARNS = _DIFFERENTIATES | {EventKind.STEP}
_EVALUATED, _FORWARD, _BACKWARD = "evaluated", "forward", "backward"


@dataclass(frozen=True)
class Moment:
    """What holds at one point of a path, for one model.

    ``mode``: ``train``, ``eval``, ``entry`` (as the caller left it) or ``unknown`` (something
    unresolved may have changed it). ``switch`` is the event that set it, in the innermost of the
    calls ``switched_in``. ``gradients``: on, off, or None for unknown. ``calls`` and ``loops`` are
    those that the point lies in, outermost first. ``progress``: how far a training step on a model
    left in eval mode has got, since the evaluation in the loop ``evaluated_in``, if it had one; its
    last forward pass is ``trained_by``.
    """

    mode: str
    switch: Event | None = None
    switched_in: tuple[Call, ...] = ()
    loops_at_switch: int = 0
    gradients: bool | None = True
    calls: tuple[Call, ...] = ()
    loops: tuple[Loop, ...] = ()
    progress: str = ""
    evaluated_in: Loop | None = None
    trained_by: Event | None = None


@dataclass(frozen=True)
class ForwardPass:
    """A model's forward pass at a moment, in a run.

    ``is_differentiated``: something is, under the same ``eval()``: a teacher, an attack, a saliency
    map. ``is_switched_off``: another call of the same loop trains, this one by its flag does not.
    """

    run: Run
    model: Value
    event: Event
    moment: Moment
    is_differentiated: bool
    is_switched_off: bool = False


@dataclass(frozen=True)
class TrainedInEval:
    """A training step on a model that an evaluation left in eval mode."""

    model: Value
    switch: Event
    step: Event
    loop: Loop


class _Modes(Protocol[Moment]):
    def __init__(
        self, model: Value, alternatives: set[Value], reach: dict[Event, set[Value]]
    ) -> None:
        self.model = model
        self.same = set(elements(model)) | {unwrapped(item) for item in elements(model)}
        self.passes: dict[tuple[Event, Moment], None] = {}
        self.trained: dict[tuple[Event, Event], Moment] = {}
        self.differentiated: set[Event] = set()
        self._inside = reachable(self.same | alternatives)
        self._reach = reach
        self._effects: dict[Event, str] = {}

    def watches(self, event: Event) -> bool:
        effect = self._effect(event)
        if effect is not None:
            self._effects[event] = effect
        return effect is not None

    def event(self, state: Moment, event: Event) -> Moment:
        effect = self._effects[event]
        if effect == "forward":
            self.passes[(event, state)] = None
            return _after_forward(state, event)
        if effect == "copy":
            return _after_copy(state, event)
        if effect == "part" and state.mode == EVAL:
            return replace(state, mode=UNKNOWN, switch=None)
        if effect == "part":
            return state
        if effect == "gradients":
            return replace(state, gradients=_as_flag(event.target))
        if effect == "backward":
            reached = state.progress in (_FORWARD, _BACKWARD)
            if state.switch is not None and state.mode == EVAL:
                only = state.trained_by if reached and state.evaluated_in is not None else None
                self.differentiated.add(only or state.switch)
            return replace(state, progress=_BACKWARD) if reached else state
        if effect == "step":
            if state.progress == _BACKWARD and state.switch is not None:
                self.trained.setdefault((state.switch, event), state)
            return state
        switch = event if effect in (TRAIN, EVAL) and event.kind is not EventKind.NEW else None
        return replace(
            state,
            mode=effect,
            switch=switch,
            switched_in=state.calls,
            loops_at_switch=len(state.loops),
            progress="",
            evaluated_in=None,
            trained_by=None,
        )

    def _effect(self, event: Event) -> str | None:
        """The mode that an event sets, or what else it does to the state; None for nothing."""
        kind, target = event.kind, event.target
        if kind is EventKind.FORWARD:
            if self._is_model(target):
                return "forward"
            return "copy" if self._is_copy(target) else None
        if kind in (EventKind.TRAIN, EventKind.EVAL) and self._contains_model(target):
            return TRAIN if kind is EventKind.TRAIN else EVAL
        if kind is EventKind.TRAIN and self._is_unseen_part(target):
            return "part"
        if kind in (EventKind.TRAIN, EventKind.EVAL, EventKind.MODE):
            return UNKNOWN if self._is_related(target) else None
        if kind is EventKind.NEW:
            return _initial_mode(target) if target in self.same else None
        if kind is EventKind.OPAQUE:
            return UNKNOWN if self._may_switch(event) else None
        if kind is EventKind.STEP:
            return "step" if target is not None and not are_apart(target, self.model) else None
        if kind is EventKind.GRAD_MODE:
            return "gradients"
        return "backward" if kind in _DIFFERENTIATES else None

    def enter(self, state: Moment, step: Scope | Call | Loop) -> Moment:
        if isinstance(step, Scope):
            return replace(state, gradients=_inside_scope(step, state.gradients))
        if isinstance(step, Loop):
            return replace(state, loops=(*state.loops, step))
        return replace(state, calls=(*state.calls, step))

    def leave(self, outside: Moment, inside: Moment, step: Scope | Call | Loop) -> Moment:
        if isinstance(step, Scope):
            return replace(inside, gradients=outside.gradients)
        return replace(inside, loops=outside.loops, calls=outside.calls)

    def is_trained_in(self, loop: Loop) -> bool:
        """Whether a loop puts the model in train mode, or may do so, somewhere."""
        switches = events(loop.body, EventKind.TRAIN, EventKind.MODE)
        return any(self._contains_model(event.target) for event in switches)

    def _is_model(self, target: Value | None) -> bool:
        return any(item in self.same or unwrapped(item) in self.same for item in elements(target))

    def _is_copy(self, target: Value | None) -> bool:
        """Whether something is a copy of the model: its average, say."""
        copies = (unwrapped(item) for item in elements(target))
        return any(
            isinstance(item, Object) and item.copy_of is not None and self._is_model(item.copy_of)
            for item in copies
        )

    def _contains_model(self, target: Value | None) -> bool:
        if self._is_model(target):
            return True
        held = reachable([unwrapped(item) for item in elements(target)])
        return not self.same.isdisjoint(held)

    def _is_unseen_part(self, target: Value | None) -> bool:
        """``model.head`` of a model whose inside is not in sight."""
        parents = (item.parent for item in elements(target) if isinstance(item, Unknown))
        return any(self._is_model(parent) for parent in parents)

    def _is_related(self, target: Value | None) -> bool:
        """A part of the model or of its alternatives, or its neighbour in a container."""
        targets = {unwrapped(item) for item in elements(target)}
        if not targets.isdisjoint(self._inside):
            return True
        parents = {item.parent for item in self.same if isinstance(item, Unknown) and item.parent}
        return any(isinstance(item, Unknown) and item.parent in parents for item in targets)

    def _may_switch(self, event: Event) -> bool:
        if event not in self._reach:
            self._reach[event] = reachable(event.arguments, through_tensors=False)
        if self._reach[event].isdisjoint(self.same):
            return False
        node = event.node
        is_own_method = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and self._is_model(event.target)
        )
        if not is_own_method:
            return True
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Attribute)
        name = node.func.attr.lower()
        return any(word in name for word in ("eval", "train", "mode", "test", "prepare"))


def forward_passes(run: Run) -> Iterator[ForwardPass]:
    """Every forward pass of every top-level model of a run, with each moment it happens at."""
    for protocol in _followed(run):
        for event, moment in protocol.passes:
            is_differentiated = not protocol.differentiated.isdisjoint({moment.switch, event})
            yield ForwardPass(run, protocol.model, event, moment, is_differentiated)


def trained_in_eval(run: Run) -> Iterator[TrainedInEval]:
    """Every training step of a run on a model that an evaluation left in eval mode.

    A loop must repeat the two, and not hold ``train()`` under whatever condition.
    """
    for protocol in _followed(run):
        for (switch, step), moment in protocol.trained.items():
            loop = _loop_of_both(moment.loops, switch, step)
            if (
                loop is not None
                and not protocol.is_trained_in(loop)
                and not _is_hidden(protocol.model)
                and not _is_made_anew(protocol.model, loop)
            ):
                yield TrainedInEval(protocol.model, switch, step, loop)


def _is_hidden(model: Value) -> bool:
    """A part of an unknown object: the same module may be switched under another name."""
    return isinstance(model, Unknown) and isinstance(model.parent, Unknown)


def _is_made_anew(model: Value, loop: Loop) -> bool:
    """Whether each lap has a model of its own, which starts in train mode again."""
    return unwrapped(model).birth >= loop.start


def has_outer_forward(run: Run) -> bool:
    """Whether some code of a run calls a model from outside any model."""
    return any(True for _ in _outer_forwards(run.trace))


def is_forward(step: Step) -> bool:
    """Whether a step is the inside of a module's forward pass."""
    if not isinstance(step, Call) or step.function.owner is None:
        return False
    return step.function.name == "forward" and step.function.owner.is_module


def _followed(run: Run) -> list[_Modes]:
    if run.modes is None:
        run.modes = []
        reach: dict[Event, set[Value]] = {}
        for model in _models(run):
            protocol = _Modes(model, _alternatives(run, model), reach)
            follow(run.trace, protocol, Moment(_mode_at_start(model)))
            run.modes.append(protocol)
    return run.modes  # type: ignore[return-value]


def _models(run: Run) -> list[Value]:
    """What is called as a model by training code, not the layers inside."""
    found: dict[Value, Value] = {}
    for event in _outer_forwards(run.trace):
        if event.target is not None and has_role(event.target, Role.MODULE):
            found.setdefault(unwrapped(event.target), event.target)
    return list(found.values())


def _alternatives(run: Run, model: Value) -> set[Value]:
    """What the code calls by the same name on other paths: which of them, nobody knows later."""
    found: set[Value] = set()
    for event in events(run.trace, EventKind.TRAIN, EventKind.EVAL, EventKind.FORWARD):
        together = {unwrapped(item) for item in elements(event.target)}
        if len(together) > 1 and unwrapped(model) in together:
            found |= together
    return found


def _outer_forwards(trace: Trace) -> Iterator[Event]:
    for step in trace:
        if isinstance(step, Event) and step.kind is EventKind.FORWARD:
            yield step
        if not is_forward(step):
            for part in parts(step):
                yield from _outer_forwards(part)


def _after_forward(state: Moment, event: Event) -> Moment:
    """First an evaluation without gradients, then a forward pass with.

    A frozen part that runs in the middle of the training step is no evaluation: that one has a loop
    of its own, or a function that says so. One with gradients on has to have both, or data whose
    name says so.
    """
    if state.mode != EVAL:
        return replace(state, progress="")
    own_loop = state.loops[-1] if len(state.loops) > state.loops_at_switch else None
    is_named = any(sounds_like_evaluation(call.function.name) for call in state.calls)
    if state.progress:
        is_past = state.evaluated_in not in state.loops
        if state.gradients is True and is_past:
            progress = _FORWARD if state.progress == _EVALUATED else state.progress
            return replace(state, progress=progress, trained_by=event)
        return state
    if state.gradients is False and (own_loop is not None or is_named):
        return replace(state, progress=_EVALUATED)
    if state.gradients is True and own_loop is not None and not _learns(own_loop):
        is_meant = is_named or any(map(sounds_like_evaluation, names_of_iterated(own_loop)))
        if is_meant:
            return replace(state, progress=_EVALUATED, evaluated_in=own_loop)
    return state


def _after_copy(state: Moment, event: Event) -> Moment:
    """A model in eval mode while its average is evaluated has been left in it all the same."""
    after = _after_forward(state, event)
    return after if not state.progress and after.progress == _EVALUATED else state


def _learns(loop: Loop) -> bool:
    return not _LEARNS.isdisjoint((loop.original or loop).kinds)


def _loop_of_both(loops: tuple[Loop, ...], switch: Event, step: Event) -> Loop | None:
    """The innermost loop that repeats the evaluation and the training step."""
    for loop in reversed(loops):
        whole = loop.original or loop
        inside = set(events(whole.body))
        if switch in inside and step in inside:
            return whole
    return None


def _mode_at_start(model: Value) -> str:
    """What other libraries hand out, exported and scripted modules say, has a mode of its own."""
    inner = unwrapped(model)
    is_foreign = isinstance(inner, Object) and not inner.dotted.startswith(_MADE_IN_TRAIN_MODE)
    return UNKNOWN if is_foreign else ENTRY


def _initial_mode(model: Value | None) -> str:
    """Modules are made in train mode; ``from_pretrained`` hands them out in eval mode."""
    if isinstance(model, Object):
        if model.dotted == "torch.optim.swa_utils.AveragedModel":
            return _initial_mode(model.copy_of)
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
