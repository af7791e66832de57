"""When learning-rate schedulers step: before or after the optimizer, each batch or each epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from trainlint.analysis.accumulation import windows
from trainlint.analysis.evaluations import contexts
from trainlint.analysis.file_model import FileModel
from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.ownership import may_touch
from trainlint.analysis.receivers import last_name
from trainlint.analysis.roles import Role, has_role
from trainlint.analysis.trace import (
    Branch,
    Event,
    EventKind,
    Loop,
    Scope,
    Step,
    around,
    events,
    steps,
)
from trainlint.analysis.values import Constant, Instance, Object, Value, elements, options

_TORCH = "torch.optim.lr_scheduler."
# Options with which accelerate's schedulers may step on each call.
_STEPS_OTHERWISE = {"step_scheduler_with_optimizer", "gradient_accumulation_plugin", None}
PLATEAU = f"{_TORCH}ReduceLROnPlateau"


@dataclass(frozen=True)
class SchedulerStep:
    """A ``step()`` of a scheduler that the model has seen being made, ``schedulers`` its options.

    ``is_sure``: nothing else can be stepped there. ``loops`` are the loops around it, outermost
    first, without those over schedulers or over a few literals. ``way`` is all that stands around.
    """

    run: Run
    event: Event
    call: ast.Call
    schedulers: list[Object | Instance]
    is_sure: bool
    way: list[Step]
    loops: list[Loop]

    @property
    def takes_nothing(self) -> bool:
        """Whether ``step()`` is called without an epoch or a metric."""
        return not self.call.args and not self.call.keywords

    def is_of(self, optimizer: Value | None) -> bool:
        """Whether the scheduler drives an optimizer."""
        driven = {item for made in self.schedulers for item in elements(_driven(made))}
        return any(item in driven for item in elements(optimizer))


def scheduler_steps(file: FileModel) -> Iterator[SchedulerStep]:
    """All steps in a file of torch's own schedulers, and of what derives from them.

    A call that may reach several schedulers is one step of any of them.
    """
    for run, _ in contexts(file, lambda run: _may_step(run, file)):
        for call, found in _by_call(run, file).items():
            yield from _scheduler_step(run, call, found)


def _may_step(run: Run, file: FileModel) -> bool:
    """Whether a scheduler steps in the run, or something that only a caller may know to be one."""
    return any(
        event.file is file
        and isinstance(event.node, ast.Call)
        and isinstance(event.node.func, ast.Attribute)
        and event.node.func.attr == "step"
        for event in events(run.trace, EventKind.SCHEDULER_STEP, EventKind.OPAQUE)
    )


def _by_call(run: Run, file: FileModel) -> dict[ast.Call, list[Event]]:
    found: dict[ast.Call, list[Event]] = {}
    for event in events(run.trace, EventKind.SCHEDULER_STEP):
        if event.file is file and isinstance(event.node, ast.Call):
            found.setdefault(event.node, []).append(event)
    return found


def _scheduler_step(run: Run, call: ast.Call, found: list[Event]) -> Iterator[SchedulerStep]:
    targets = list(dict.fromkeys(item for event in found for item in options(event.target)))
    made = [item for item in targets if isinstance(item, (Object, Instance)) and _is_known(item)]
    if made:
        way = around(run.trace, found[0])
        split = way[-1] if way and isinstance(way[-1], Branch) and way[-1].node is call else None
        is_sure = len(made) == len(targets) and (split is None or len(split.ways) == len(found))
        yield SchedulerStep(run, found[0], call, made, is_sure, way, _loops(way, targets))


def plateaus(step: SchedulerStep) -> list[Object]:
    """Those of the schedulers that follow a metric."""
    found = [item for item in step.schedulers if isinstance(item, Object)]
    return [item for item in found if item.dotted == PLATEAU]


def optimizer_step_after(step: SchedulerStep) -> Event | None:
    """The optimizer's first step, if it comes after the scheduler's first, in the same loop.

    None also where the scheduler may skip the first lap, or where something unresolved may step.
    """
    if not (step.is_sure and step.loops and step.takes_nothing and _is_always_reached(step)):
        return None
    everything = list(events(step.run.trace))
    here = everything.index(step.event)
    inside = set(steps(step.loops[-1].body))
    if any(_may_come_first(step, event, is_inside=event in inside) for event in everything[:here]):
        return None
    taken = (event for event in everything[here:] if event.kind is EventKind.STEP)
    return next((event for event in taken if event in inside and step.is_of(event.target)), None)


def _may_come_first(step: SchedulerStep, event: Event, *, is_inside: bool) -> bool:
    """Whether an event that comes first may be a step of the scheduler's optimizer."""
    if event.kind is EventKind.STEP:
        return step.is_of(event.target) or not isinstance(event.target, Object)
    if event.kind is not EventKind.OPAQUE or not is_inside:
        return False
    return may_touch(event, *(_driven(made) or made for made in step.schedulers))


def steps_each_batch(step: SchedulerStep) -> bool:
    """Whether the scheduler steps in a loop over batches, which a loop over epochs repeats."""
    if not step.is_sure or len(step.loops) < 2 or not walks_batches(step.loops[-1]):
        return False
    return _trains_with(step, step.loops[-1]) and not walks_batches(step.loops[-2])


def steps_each_epoch(step: SchedulerStep) -> Loop | None:
    """The loop over batches that an epoch trains in, if the scheduler steps once around it."""
    if not step.is_sure or not step.loops or walks_batches(step.loops[-1]):
        return None
    for inner in steps(step.loops[-1].body):
        if isinstance(inner, Loop) and walks_batches(inner) and _trains_with(step, inner):
            return inner
    return None


def batches_of_one_step(step: SchedulerStep) -> str | None:
    """What says in how many batches the scheduler steps once, as written; None if in each.

    It steps where the gradients of so many batches are complete, or under accelerate, whose
    schedulers let the other calls pass.
    """
    if not step.is_sure or not step.loops or not walks_batches(step.loops[-1]):
        return None
    if any(isinstance(item, Scope) and item.kind == "accumulate" for item in step.way):
        return _accelerated(step.event.file, step.call)
    nodes = {item.node for item in step.way if isinstance(item, Branch)}
    for window in windows(step.event.file):
        if window.branch in nodes and window.is_accumulation and _is_in(window.branch.body, step):
            return ast.unparse(window.size)
    return None


def _is_in(block: list[ast.stmt], step: SchedulerStep) -> bool:
    return any(node is step.call for statement in block for node in ast.walk(statement))


def _accelerated(file: FileModel, call: ast.Call) -> str | None:
    """The number of batches that an ``Accelerator`` of the file adds up, if it prepares that."""
    if not _is_prepared(file, call):
        return None
    for made in file.nodes(ast.Call):
        given = {item.arg: item.value for item in made.keywords}
        size = given.get("gradient_accumulation_steps")
        if last_name(made) != "Accelerator" or size is None:
            continue
        is_one = isinstance(size, ast.Constant) and size.value == 1
        return None if is_one or given.keys() & _STEPS_OTHERWISE else ast.unparse(size)
    return None


def _is_prepared(file: FileModel, call: ast.Call) -> bool:
    """Whether ``accelerator.prepare(...)`` is given what a method is called of."""
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    function = file.index.enclosing_function(call)
    return any(
        last_name(made) == "prepare"
        and ast.unparse(receiver) in map(ast.unparse, made.args)
        and (isinstance(receiver, ast.Attribute) or file.index.enclosing_function(made) is function)
        for made in file.nodes(ast.Call)
    )


def walks_batches(loop: Loop) -> bool:
    """Whether a loop goes through a loader."""
    for item in elements(loop.iterated):
        inside = item.arguments if isinstance(item, Object) and not _is_loader(item) else []
        if any(_is_loader(part) for value in (item, *inside) for part in elements(value)):
            return True
    return False


def _is_loader(value: Value) -> bool:
    return has_role(value, Role.LOADER)


def _is_known(value: Object | Instance) -> bool:
    if isinstance(value, Object):
        return value.dotted.startswith((_TORCH, "transformers."))
    return any((name or "").startswith(_TORCH) for name in value.definition.external_bases())


def _driven(scheduler: Object | Instance) -> Value | None:
    if isinstance(scheduler, Object):
        return scheduler.argument(0, "optimizer")
    return scheduler.arguments[0] if scheduler.arguments else None


def _loops(way: list[Step], schedulers: list[Value]) -> list[Loop]:
    return [
        step
        for step in way
        if isinstance(step, Loop)
        and not isinstance(step.iterated, Constant)
        and not any(item in schedulers for item in elements(step.element))
        and not isinstance(step.node, ast.expr)
    ]


def _is_always_reached(step: SchedulerStep) -> bool:
    """Whether no condition that can change from lap to lap stands between loop and step."""
    loop = step.loops[-1]
    way = step.way[step.way.index(loop) + 1 :]
    return not any(
        isinstance(outer, Branch) and _may_change(outer, inner, loop)
        for outer, inner in zip(way, [*way[1:], step.event], strict=False)
    )


def _may_change(branch: Branch, inside: Step, loop: Loop) -> bool:
    assumed = next(
        conditions for conditions, trace in branch.ways if any(item is inside for item in trace)
    )
    test = getattr(branch.node, "test", None)
    bound = loop.file.names_stored_in(loop.node) if isinstance(loop.node, ast.stmt) else frozenset()
    if test is None or any(
        isinstance(node, ast.Name) and node.id in bound for node in ast.walk(test)
    ):
        return True
    return not assumed or any(
        condition.volatile or condition.birth >= loop.start for condition, _ in assumed
    )


def _trains_with(step: SchedulerStep, loop: Loop) -> bool:
    return any(step.is_of(event.target) for event in events(loop.body, EventKind.STEP))
