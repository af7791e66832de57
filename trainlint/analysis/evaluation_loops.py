"""Which loops over batches evaluate: by their data, phase, function, and what they add up."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from trainlint.analysis.knowledge.training import sounds_like_evaluation, sounds_like_training
from trainlint.analysis.loop_names import iterated, names_of_iterated
from trainlint.analysis.protocols.modes import EVAL, ForwardPass
from trainlint.analysis.roles import Role, has_role
from trainlint.analysis.trace import Call, Event, EventKind, Loop, steps
from trainlint.analysis.values import Constant, Instance, Value, elements

_LEARNS = frozenset({EventKind.BACKWARD, EventKind.GRADIENT, EventKind.STEP})
_TRAINS = _LEARNS | {EventKind.ZERO_GRAD}
_MEASURED = frozenset({EventKind.LOSS})
_FLAG = re.compile(
    r"train|learn|update|optim|^opts?$|eval|valid|test|infer|phase|mode|split|stage|backward|grad",
    re.IGNORECASE,
)
KEEPS_SCORE = re.compile(
    r"correct(?!ion|_bias)|accura|(?<![a-z])acc(?![a-z])"
    r"|(?<![a-z])loss[^\n]*\.item\(\)|argmax\([^\n]*\) *=="
)
"""How a loop shows that it measures: right answers are counted, or losses added up."""


def evaluation_loop(found: ForwardPass) -> Loop | None:
    """The loop over batches that a forward pass evaluates in; None where it is none."""
    phase = evaluation_phase(found)
    for loop in reversed(found.moment.loops):
        clears_for_nothing = phase is not None or found.moment.mode == EVAL
        if _has(loop, _LEARNS if clears_for_nothing else _TRAINS):
            return None
        if _walks_batches(loop) or _feeds(loop, found.event) or _slices(loop, found.event):
            is_switched_off = found.is_switched_off and not _sounds_like_training(loop)
            return loop if phase or is_switched_off or _sounds_right(loop, found) else None
    return None


def with_switches(passes: list[ForwardPass]) -> list[ForwardPass]:
    """The forward passes of a run; those whose loop trains in another call only are marked.

    That is how one function trains and evaluates: ``run(loader, train=True)``.
    """
    loops = {loop for found in passes if (loop := _innermost(found)) is not None}
    teaching = {loop for loop in loops if _has(loop, _LEARNS)}
    learning = {found.event.node for found in passes if _innermost(found) in teaching}
    return [
        replace(found, is_switched_off=True)
        if found.event.node in learning and _is_switched_off(found)
        else found
        for found in passes
    ]


def _innermost(found: ForwardPass) -> Loop | None:
    return found.moment.loops[-1] if found.moment.loops else None


def _is_switched_off(found: ForwardPass) -> bool:
    """Whether the function whose loop does not learn is called with a flag that says so."""
    loop = _innermost(found)
    if loop is None or _has(loop, _TRAINS):
        return False
    function = loop.file.index.enclosing_function(loop.node)
    call = next((item for item in found.moment.calls if item.function.node is function), None)
    return call is not None and any(map(_FLAG.search, _literal_arguments(call)))


def _literal_arguments(call: Call) -> Iterator[str]:
    """The parameters that a call, or its function's defaults, give a literal."""
    if not isinstance(call.node, ast.Call):
        return
    node, parameters = call.node, [item.arg for item in call.function.parameters]
    if parameters[:1] == ["self"]:
        parameters = parameters[1:]
    given = dict(zip(parameters, node.args, strict=False))
    given.update({item.arg: item.value for item in node.keywords if item.arg is not None})
    defaults = call.function.node.args.defaults
    for name, default in zip(parameters[-len(defaults) :], defaults, strict=False):
        given.setdefault(name, default)
    yield from (name for name, value in given.items() if isinstance(value, ast.Constant))


def evaluation_phase(found: ForwardPass) -> str | None:
    """``val`` in its lap of ``for phase in ["train", "val"]``; None outside such a lap."""
    for loop in reversed(found.moment.loops):
        names = [item.value for item in elements(loop.lap) if isinstance(item, Constant)]
        for name in names:
            if isinstance(name, str) and sounds_like_evaluation(name):
                return name
    return None


def scores_held_out_data(loop: Loop) -> bool:
    """Whether a loop walks data that is named after an evaluation, and counts what is right."""
    is_held_out = any(map(sounds_like_evaluation, names_of_iterated(loop)))
    return is_held_out and _keeps_score(loop)


def trains(loop: Loop) -> bool:
    """Whether a loop takes gradients or training steps."""
    return _has(loop, _TRAINS)


def learns(loop: Loop) -> bool:
    """Whether a loop changes weights, or fills the gradients for that: it does more than look."""
    return _has(loop, _LEARNS - {EventKind.GRADIENT})


def _has(loop: Loop, kinds: frozenset[EventKind]) -> bool:
    return not kinds.isdisjoint((loop.original or loop).kinds)


def _sounds_like_training(loop: Loop) -> bool:
    return any(sounds_like_training(name) for name in names_of_iterated(loop))


def _sounds_right(loop: Loop, found: ForwardPass) -> bool:
    if _sounds_like_training(loop):
        return False
    if any(sounds_like_evaluation(name) for name in names_of_iterated(loop)):
        return True
    function = loop.file.index.enclosing_function(loop.node)
    if function is None or loop.file.is_unit_test:
        return False
    return sounds_like_evaluation(function.name) or _measures(loop, function.name, found)


def _measures(loop: Loop, function: str, found: ForwardPass) -> bool:
    """Whether a loop without gradients keeps a score, and not of the data that it trains on."""
    is_quiet = found.moment.gradients is False and (
        not sounds_like_training(function) or not _is_trained_on(loop, found)
    )
    return is_quiet and _keeps_score(loop)


def _keeps_score(loop: Loop) -> bool:
    text = loop.file.segment(loop.file.index.statement(loop.node))
    return KEEPS_SCORE.search(text) is not None


def _is_trained_on(loop: Loop, found: ForwardPass) -> bool:
    """Whether another loop of the run learns from the same data, or that cannot be told."""
    walked = set(iterated(loop))
    return not walked or any(
        not walked.isdisjoint(iterated(other))
        for other in steps(found.run.trace)
        if isinstance(other, Loop) and _has(other, _LEARNS)
    )


def _walks_batches(loop: Loop) -> bool:
    return any(has_role(item, Role.LOADER) or _is_batches(item) for item in iterated(loop))


def _feeds(loop: Loop, forward: Event) -> bool:
    """Whether the model gets what the loop binds together with something else: a target."""
    target = _target(loop.node)
    if loop.file is not forward.file or not isinstance(target, (ast.Tuple, ast.Name)):
        return False
    bound = {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
    given = forward.node.args if isinstance(forward.node, ast.Call) else []
    read = {node.id for item in given for node in ast.walk(item) if isinstance(node, ast.Name)}
    return len(bound) > 1 and not bound.isdisjoint(read)


def _target(node: ast.AST) -> ast.expr | None:
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        return node.generators[-1].target
    return node.target if isinstance(node, (ast.For, ast.AsyncFor)) else None


def _slices(loop: Loop, forward: Event) -> bool:
    """Whether a loop over positions cuts each batch out of the data, and measures.

    ``for i in range(0, len(data), size): model(data[i : i + size])``, or a helper that gets ``i``.
    """
    node, given = loop.node, forward.node
    if not isinstance(node, ast.For) or not isinstance(given, ast.Call):
        return False
    if loop.file is not forward.file or not isinstance(node.target, ast.Name):
        return False
    is_counted = isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func).endswith("range")
    measures = _has(loop, _MEASURED) or KEEPS_SCORE.search(loop.file.segment(node))
    if not is_counted or not measures:
        return False
    position = node.target.id
    cut = {
        target.id
        for statement in node.body
        if isinstance(statement, ast.Assign) and _reads(statement.value, {position})
        for part in statement.targets
        for target in ast.walk(part)
        if isinstance(target, ast.Name)
    }
    return any(
        _reads(item, cut) or (isinstance(item, ast.Subscript) and _reads(item.slice, {position}))
        for item in given.args
    )


def _reads(expression: ast.expr, names: set[str]) -> bool:
    return any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(expression))


def _is_batches(value: Value) -> bool:
    return isinstance(value, Instance) and value.definition.name.endswith(("Loader", "Dataset"))
