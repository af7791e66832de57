"""Distributed samplers: which loops walk them epoch after epoch, and who tells them the epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from trainlint.analysis.evaluations import contexts
from trainlint.analysis.file_model import FileModel
from trainlint.analysis.frameworks import imports_framework
from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.knowledge.libraries import SETS_EPOCH_ITSELF
from trainlint.analysis.knowledge.training import DISTRIBUTED_SAMPLERS
from trainlint.analysis.ownership import reachable
from trainlint.analysis.trace import Call, Event, EventKind, Loop, Step, Trace, events, parts
from trainlint.analysis.values import Constant, Object, Unknown, Value, elements

_SHUFFLE = 3


@dataclass(frozen=True)
class RepeatedSampler:
    """A shuffling sampler that repeats one order: ``epochs`` walks ``batches`` again and again."""

    sampler: Object
    epochs: Loop
    batches: Loop


def repeated_samplers(file: FileModel) -> Iterator[RepeatedSampler]:
    """The distributed samplers made in a file that train on the same order in every epoch."""
    for run, _ in contexts(file, lambda run: any(True for _ in _samplers(run, file))):
        made = [sampler for sampler in _samplers(run, file) if not _may_be_told(run, sampler)]
        if not made:
            continue
        for outer, loop in _loops(run.trace, ()):
            held = reachable([loop.iterated], through_tensors=False)
            for sampler in made:
                epochs = _epochs_around(outer, loop, sampler) if sampler in held else None
                if epochs is not None and not _has_framework(file, loop.file):
                    yield RepeatedSampler(sampler, epochs, loop)


def _samplers(run: Run, file: FileModel) -> Iterator[Object]:
    """The shuffling samplers that a run makes, and those that its object held from the start."""
    made = [event.target for event in events(run.trace, EventKind.NEW) if event.file is file]
    yield from filter(_shuffles, made)
    held = reachable([loop.iterated for _, loop in _loops(run.trace, ())], through_tensors=False)
    older = [item for item in held if _shuffles(item) and item not in made]
    if older and not _is_set_epoch_known(run):
        yield from (item for item in older if item.node in file.index.parents)


def _shuffles(value: Value | None) -> TypeGuard[Object]:
    if not isinstance(value, Object) or value.dotted not in DISTRIBUTED_SAMPLERS:
        return False
    shuffle = value.argument(_SHUFFLE, "shuffle")
    return shuffle is None or (isinstance(shuffle, Constant) and shuffle.value is True)


def _is_set_epoch_known(run: Run) -> bool:
    """Whether any file of the project speaks of the method, comments apart."""
    return any(map(_names_set_epoch, run.file.project.files_mentioning("set_epoch")))


def _names_set_epoch(file: FileModel) -> bool:
    """``sampler.set_epoch(...)``, ``def set_epoch`` or ``hasattr(sampler, "set_epoch")``."""
    return (
        any(node.attr == "set_epoch" for node in file.nodes(ast.Attribute))
        or any(node.name == "set_epoch" for node in file.nodes(ast.FunctionDef))
        or any(node.value == "set_epoch" for node in file.nodes(ast.Constant))
    )


def _may_be_told(run: Run, sampler: Object) -> bool:
    """Whether something calls ``set_epoch`` on the sampler, or on what may hold it, or might.

    A call that cannot be followed might, if any file of the project knows the method.
    """
    told: set[ast.AST] = set()
    might = (EventKind.OPAQUE,) if _is_set_epoch_known(run) else ()
    for event in events(run.trace, EventKind.SET_EPOCH, *might):
        if event.kind is EventKind.SET_EPOCH:
            told.add(event.node)
            if any(isinstance(item, Unknown) for item in elements(event.target)):
                return True
        subjects = [event.target] if event.kind is EventKind.SET_EPOCH else event.arguments
        if sampler in reachable(subjects, through_tensors=False):
            return True
    return any(
        call not in told
        for function in run.entered
        for call in function.calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "set_epoch"
    )


def _loops(trace: Trace, around: tuple[Step, ...]) -> Iterator[tuple[tuple[Step, ...], Loop]]:
    """All loops, each with the loops and calls around it."""
    for step in trace:
        if isinstance(step, Event):
            continue
        if isinstance(step, Loop):
            yield around, step
        inside = (*around, step) if isinstance(step, (Loop, Call)) else around
        for part in parts(step):
            yield from _loops(part, inside)


def _epochs_around(around: tuple[Step, ...], batches: Loop, sampler: Object) -> Loop | None:
    """The innermost loop that trains on all batches again and again, younger than the sampler."""
    for step in reversed(around):
        if isinstance(step, Loop) and _repeats(step) and sampler.birth < step.start:
            trained = _trains(batches) or (
                _is_in_generator(around, step)
                and any(_trains(item) for item in around if isinstance(item, Loop))
            )
            return step if trained else None
    return None


def _is_in_generator(around: tuple[Step, ...], loop: Step) -> bool:
    """Whether a loop stands in a generator function, whose consumer trains."""
    calls = [step for step in around[: around.index(loop)] if isinstance(step, Call)]
    return bool(calls) and calls[-1].function.is_generator


def _trains(loop: Loop) -> bool:
    return any(True for _ in events(loop.body, EventKind.STEP))


def _repeats(loop: Loop) -> bool:
    """Whether a loop runs more than once; one element of an unrolled loop does not."""
    iterated: Value | None = loop.iterated
    if isinstance(loop.node, ast.While):
        return True
    if isinstance(iterated, Constant):
        return False
    if isinstance(iterated, Object) and iterated.dotted == "builtins.range" and iterated.arguments:
        last = iterated.arguments[-1] if len(iterated.arguments) < 3 else iterated.arguments[1]
        return not (isinstance(last, Constant) and last.value in (0, 1))
    return isinstance(loop.node, (ast.For, ast.AsyncFor))


def _has_framework(*files: FileModel) -> bool:
    """Whether a library is in play whose loaders or hooks call ``set_epoch``."""
    return any(imports_framework(file, *SETS_EPOCH_ITSELF) for file in files)
