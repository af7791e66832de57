"""Sums over batches: ``correct += ...`` in a loop, read after it, and where they start from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainlint.analysis.best_scores import constant_value, is_stored
from trainlint.analysis.blocks import loop_around
from trainlint.analysis.knowledge.metrics import better_when
from trainlint.analysis.knowledge.training import looks_like_loader
from trainlint.analysis.receivers import last_name

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

LoopStatement = ast.For | ast.AsyncFor | ast.While
_METER = re.compile(r"Meter$|^AverageMeter|RunningAverage$|^Averager?$")
_READS = frozenset(
    {"avg", "mean", "average", "global_avg", "sum", "value", "val", "compute", "get"}
)
_FORGETS = frozenset({"reset", "clear", "zero", "reset_states", "__init__", "new_epoch", "start"})


@dataclass(frozen=True, eq=False)
class RunningTotal:
    """A sum, or a meter, that starts before the epochs and is read in each of them."""

    name: str
    start: ast.Assign
    epochs: LoopStatement
    batches: LoopStatement
    read: ast.expr


def totals_over_all_epochs(file: FileModel) -> Iterator[RunningTotal]:
    """Sums and meters that nothing sets back between epochs though each epoch reports them."""
    for statement in file.nodes(ast.AugAssign):
        target = statement.target
        if (
            isinstance(target, ast.Name)
            and isinstance(statement.op, ast.Add)
            and _is_score(target.id)
        ):
            yield from _total(file, target, statement, is_meter=False)
    for call in file.nodes(ast.Call):
        function = call.func
        is_added_to = isinstance(function, ast.Attribute) and function.attr in ("update", "add")
        receiver = function.value if isinstance(function, ast.Attribute) else None
        if is_added_to and isinstance(receiver, ast.Name):
            yield from _total(file, receiver, call, is_meter=True)


def _is_score(name: str) -> bool:
    return better_when(name) is not None


def _total(
    file: FileModel, name: ast.Name, added: ast.AST, *, is_meter: bool
) -> Iterator[RunningTotal]:
    batches = loop_around(file, added)
    epochs = loop_around(file, batches) if batches is not None else None
    if (
        batches is None
        or epochs is None
        or not _walks_batches(batches)
        or not _counts_epochs(epochs)
    ):
        return
    start = _only_start(file, name, epochs)
    if start is None or is_meter is not _makes_meter(file, start.value):
        return
    if is_meter and _is_forgotten(file, name):
        return
    for read in _reads(file, name, epochs, batches):
        reported = _as_meter(file, read) if is_meter else _as_average(file, read, epochs)
        if reported is not None:
            yield RunningTotal(name.id, start, epochs, batches, reported)
            return


def _walks_batches(loop: LoopStatement) -> bool:
    if isinstance(loop, ast.While):
        return False
    return any(
        isinstance(node, (ast.Name, ast.Attribute)) and looks_like_loader(last_name(node))
        for node in ast.walk(loop.iter)
    )


def _counts_epochs(loop: LoopStatement) -> bool:
    if isinstance(loop, ast.While):
        return "epoch" in ast.unparse(loop.test).lower()
    is_once = ast.unparse(loop.iter) in ("range(1)", "range(0, 1)")
    return "epoch" in f"{ast.unparse(loop.target)} {ast.unparse(loop.iter)}".lower() and not is_once


def _only_start(file: FileModel, name: ast.Name, epochs: LoopStatement) -> ast.Assign | None:
    """The one place that sets the variable, in the same scope and before the epochs."""
    scope = file.index.scope(name)
    bound = file.index.bindings(name.id, scope)
    places = [
        file.index.statement(item)
        for item in bound
        if isinstance(item, ast.Name)
        and not isinstance(file.index.parents.get(item), ast.AugAssign)
    ]
    if len(places) != 1 or len(bound) != len(
        [item for item in bound if isinstance(item, ast.Name)]
    ):
        return None
    start = places[0]
    if not isinstance(start, ast.Assign) or not is_stored(start, name):
        return None
    is_before = start.lineno < epochs.lineno and file.index.scope(start) is scope
    is_zero = constant_value(start.value) == 0 or _makes_meter(file, start.value)
    return start if is_before and is_zero else None


def _makes_meter(file: FileModel, value: ast.expr) -> bool:
    """Whether a call makes an object that adds up until it is reset, by its name or its class."""
    if not isinstance(value, ast.Call):
        return False
    if _METER.search(last_name(value.func)):
        return True
    made = file.resolve_class(value.func)
    if made is None or made.method("reset") is None:
        return False
    adding = made.method("update") or made.method("add")
    return adding is not None and any(
        isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute)
        for node in ast.walk(adding.node)
    )


def _is_forgotten(file: FileModel, name: ast.Name) -> bool:
    """Whether anything resets the meter, or is handed it and might."""
    bound = file.index.bindings(name.id, file.index.scope(name))
    for node in file.nodes(ast.Name):
        if node.id != name.id or not isinstance(node.ctx, ast.Load):
            continue
        if file.index.bindings(node.id, file.index.scope(node)) is not bound:
            continue
        parent = file.index.parents.get(node)
        if isinstance(parent, ast.Attribute):
            if parent.attr in _FORGETS:
                return True
        elif not isinstance(parent, (ast.FormattedValue, ast.Compare)):
            return True
    return False


def _reads(
    file: FileModel, name: ast.Name, epochs: LoopStatement, batches: LoopStatement
) -> Iterator[ast.Name]:
    """Where the variable is read in an epoch, after the loop over batches."""
    for node in ast.walk(epochs):
        if (
            isinstance(node, ast.Name)
            and node.id == name.id
            and isinstance(node.ctx, ast.Load)
            and node.lineno > (batches.end_lineno or 0)
            and loop_around(file, node) is epochs
        ):
            yield node


def _as_meter(file: FileModel, read: ast.Name) -> ast.expr | None:
    parent = file.index.parents.get(read)
    is_value = isinstance(parent, ast.Attribute) and parent.attr in _READS
    return parent if is_value and isinstance(parent, ast.Attribute) else None


def _as_average(file: FileModel, read: ast.Name, epochs: LoopStatement) -> ast.expr | None:
    """``correct / total``, unless it is divided by something that grows with the epochs."""
    node: ast.AST = read
    parent = file.index.parents.get(node)
    while isinstance(parent, (ast.BinOp, ast.Call)):
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div) and parent.left is node:
            return None if _grows(parent.right, epochs) else parent
        node, parent = parent, file.index.parents.get(parent)
    return None


def _grows(divisor: ast.expr, epochs: LoopStatement) -> bool:
    counters = {
        node.target.id
        for node in ast.walk(epochs)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    }
    reset = {
        node.id
        for statement in ast.walk(epochs)
        if isinstance(statement, ast.Assign)
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    if isinstance(epochs, (ast.For, ast.AsyncFor)):
        counters |= {node.id for node in ast.walk(epochs.target) if isinstance(node, ast.Name)}
    used = {node.id for node in ast.walk(divisor) if isinstance(node, ast.Name)}
    return bool(used & (counters - reset)) or any(
        "step" in name or "epoch" in name for name in used
    )
