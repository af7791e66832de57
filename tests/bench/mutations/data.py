"""Mutations of loaders, samplers, metrics and the choice of the best epoch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.bench.mutations.operators import operator
from tests.bench.mutations.program import Mutation, Program, called_name, keyword

_TRAIN = re.compile(r"train", re.IGNORECASE)
_EVALUATION = re.compile(r"valid|val|test|eval|dev", re.IGNORECASE)


def _loaders(program: Program) -> Iterator[tuple[str, ast.Call]]:
    """``name = DataLoader(...)``."""
    for _, name, call in program.assigned_calls("DataLoader"):
        yield name, call


@operator("set_epoch removed", finds="sampler-set-epoch-missing")
def set_epoch_removed(program: Program) -> Iterator[Mutation]:
    """The only ``set_epoch`` of a file that makes a ``DistributedSampler``."""
    found = list(program.statement_calls("set_epoch"))
    makes_sampler = bool(program.calls(program.tree, "DistributedSampler"))
    if len(found) == 1 and makes_sampler and program.loops(found[0][0]):
        yield Mutation(found[0][0].lineno, (program.remove(found[0][0]),))


@operator("shuffle=True dropped from the training loader", finds="train-loader-no-shuffle")
def shuffle_dropped(program: Program) -> Iterator[Mutation]:
    """A loader for training by its name. ``shuffle=False`` would say that the order is meant."""
    for name, call in _loaders(program):
        shuffle = keyword(call, "shuffle")
        dropped = program.without_argument(call, "shuffle")
        is_on = isinstance(shuffle, ast.Constant) and shuffle.value is True
        if is_on and dropped is not None and _TRAIN.search(name):
            yield Mutation(call.lineno, (dropped,))


@operator("sampler and shuffle", finds="sampler-with-shuffle")
def sampler_and_shuffle(program: Program) -> Iterator[Mutation]:
    """A loader with a sampler of its own also gets ``shuffle=True``."""
    for _, call in _loaders(program):
        if keyword(call, "sampler") is not None and keyword(call, "shuffle") is None:
            yield Mutation(call.lineno, (program.with_argument(call, "shuffle=True"),))


@operator("validation on training data", finds="eval-on-train-data")
def validation_on_training_data(program: Program) -> Iterator[Mutation]:
    """The validation loader gets the dataset that the training loader of the same block has."""
    loaders = list(_loaders(program))
    for name, call in loaders:
        if not _EVALUATION.search(name) or _TRAIN.search(name) or not call.args:
            continue
        for other_name, other in loaders:
            same_block = program.scope(other) is program.scope(call) and other.args
            if not same_block or not _TRAIN.search(other_name) or _EVALUATION.search(other_name):
                continue
            data, theirs = program.source(call.args[0]), program.source(other.args[0])
            if data != theirs and _TRAIN.search(theirs) and theirs.isidentifier():
                yield Mutation(call.lineno, (program.replace(call.args[0], theirs),))


@operator("best epoch picked the wrong way around", finds="best-checkpoint-wrong-compare")
def best_compare_flipped(program: Program) -> Iterator[Mutation]:
    """``if accuracy > best_accuracy:`` that keeps the new best compares the other way."""
    for node in ast.walk(program.tree):
        if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
            continue
        test = node.test
        if len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Lt, ast.Gt)):
            continue
        names = [program.source(test.left), program.source(test.comparators[0])]
        best = [name for name in names if "best" in name.lower()]
        kept = any(
            isinstance(item, ast.Assign) and program.source(item.targets[0]) in best
            for item in node.body
        )
        if kept and re.search(r"acc|loss|f1|auc|iou|dice|error", " ".join(names), re.IGNORECASE):
            flipped = "<" if isinstance(test.ops[0], ast.Gt) else ">"
            text = f"{names[0]} {flipped} {names[1]}"
            yield Mutation(node.lineno, (program.replace(test, text),))


@operator("metric reset removed", finds="metric-not-reset")
def metric_reset_removed(program: Program) -> Iterator[Mutation]:
    """The only ``metric.reset()`` of a metric that is updated and computed in the same function."""
    for statement, call in program.statement_calls("reset"):
        name = program.receiver(call)
        scope = program.scope(statement)
        resets = [
            other
            for other in program.calls(program.tree, "reset")
            if isinstance(other.func, ast.Attribute) and program.receiver(other) == name
        ]
        used = {
            called_name(other)
            for other in program.calls(scope, "update", "compute")
            if isinstance(other.func, ast.Attribute) and program.receiver(other) == name
        }
        if len(resets) == 1 and used == {"update", "compute"} and program.repeats(statement):
            yield Mutation(statement.lineno, (program.remove(statement),))


@operator("type=bool for a flag", finds="argparse-type-bool")
def type_bool(program: Program) -> Iterator[Mutation]:
    """``action="store_true"`` becomes ``type=bool``."""
    for call in program.calls(program.tree, "add_argument"):
        action = keyword(call, "action")
        if isinstance(action, ast.Constant) and action.value == "store_true":
            dropped = program.without_argument(call, "action")
            if dropped is not None and call.args:
                start = program.text[dropped.start : dropped.end].index("action")
                begin = dropped.start + start
                yield Mutation(call.lineno, (type(dropped)(begin, dropped.end, "type=bool"),))
