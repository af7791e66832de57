"""Scores that a loop over evaluation batches overwrites, so that only the last batch's is left."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainlint.analysis.blocks import block_of, loop_around
from trainlint.analysis.knowledge.metrics import better_when
from trainlint.analysis.knowledge.training import (
    looks_like_loader,
    looks_like_loss_result,
    sounds_like_evaluation,
    speaks_of_training,
)
from trainlint.analysis.receivers import assigned_values, last_name

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

_TRAINS = frozenset({"backward", "step", "zero_grad", "manual_backward"})
_SEVERAL = re.compile(r"(loader|set|dl)s$|^(items|values)$", re.IGNORECASE)
_AVERAGES = frozenset({"sum", "mean", "fmean", "nanmean", "average", "median", "stack", "cat"})
_ONE_BATCH = re.compile(r"batch_size\s*=\s*len\(|islice|\bnext\(")


@dataclass(frozen=True, eq=False)
class LastBatchScore:
    """``read`` takes, after the loop, what each lap has overwritten under the same ``name``."""

    name: str
    loop: ast.For
    read: ast.Name


def last_batch_scores(file: FileModel) -> Iterator[LastBatchScore]:
    """The losses and metrics of a last batch that stand for a whole evaluation."""
    if _ONE_BATCH.search(file.source.text):
        return
    for loop in file.nodes(ast.For):
        if _evaluates(file, loop):
            yield from _scores(file, loop)
            yield from _added_once(file, loop)
        if any(map(looks_like_loader, _walked(file, loop))):
            yield from _emptied_each_lap(file, loop)


def _evaluates(file: FileModel, loop: ast.For) -> bool:
    walked = list(_walked(file, loop))
    loaders = [name for name in walked if looks_like_loader(name)]
    is_of_several = any(map(_SEVERAL.search, walked))
    if not loaders or is_of_several or any(map(speaks_of_training, walked)):
        return False
    function = file.index.enclosing_function(loop)
    around = [function.name] if function is not None else []
    if not any(map(sounds_like_evaluation, [*loaders, *around])):
        return False
    return not any(
        isinstance(node, ast.Break) or (isinstance(node, ast.Attribute) and node.attr in _TRAINS)
        for node in ast.walk(loop)
    )


def _walked(file: FileModel, loop: ast.For) -> Iterator[str]:
    """What a loop walks, by name: ``data.val_loader`` by the last, ``loaders["val"]`` by both."""
    bar = assigned_values(file, loop.iter) if isinstance(loop.iter, ast.Name) else ()
    for node in (part for walked in (loop.iter, *bar) for part in ast.walk(walked)):
        parent = file.index.parents.get(node)
        if isinstance(parent, (ast.Attribute, ast.Subscript)) and parent.value is node:
            continue
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield last_name(node)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            yield f"{last_name(node.value).removesuffix('s')}_{node.slice.value!s}"


def _scores(file: FileModel, loop: ast.For) -> Iterator[LastBatchScore]:
    accumulated = _accumulated(loop)
    for assigned in ast.walk(loop):
        if not isinstance(assigned, ast.Assign) or loop_around(file, assigned) is not loop:
            continue
        target = assigned.targets[0]
        if not isinstance(target, ast.Name) or not _is_score(target.id) or target.id in accumulated:
            continue
        if not _is_of_this_batch(loop, assigned, accumulated) or _is_used_in(loop, target):
            continue
        read = _first_read_after(file, loop, target)
        if read is not None:
            yield LastBatchScore(target.id, loop, read)


def _added_once(file: FileModel, loop: ast.For) -> Iterator[LastBatchScore]:
    """``correct += (predicted == y).sum()`` that has slipped out of its loop, behind it."""
    block = block_of(file, loop)
    position = block.index(loop)
    started = _set_to_zero_before(file, loop)
    overwritten = {
        node.id
        for node in ast.walk(loop)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    } - _accumulated(loop)
    for statement in block[position + 1 : position + 3]:
        if not isinstance(statement, ast.AugAssign) or not isinstance(statement.target, ast.Name):
            continue
        total = statement.target
        if isinstance(statement.op, ast.Add) and total.id in started - _names(loop):
            for node in ast.walk(statement.value):
                if isinstance(node, ast.Name) and node.id in overwritten:
                    yield LastBatchScore(node.id, loop, node)
                    break


def _emptied_each_lap(file: FileModel, loop: ast.For) -> Iterator[LastBatchScore]:
    """``losses = []`` that has slipped into the loop which fills it, averaged behind the loop."""
    for statement in loop.body:
        if not isinstance(statement, ast.Assign):
            continue
        for target, value in _pairs(statement):
            is_empty = isinstance(value, ast.List) and not value.elts
            if is_empty and isinstance(target, ast.Name) and _is_appended_to(loop, target):
                read = _first_read_after(file, loop, target)
                if read is not None and _is_averaged(file, read):
                    yield LastBatchScore(target.id, loop, read)


def _is_appended_to(loop: ast.For, name: ast.Name) -> bool:
    """Once a lap: what an inner loop collects are the parts of one batch."""
    return any(
        isinstance(statement, ast.Expr)
        and isinstance(call := statement.value, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "append"
        and ast.unparse(call.func.value) == name.id
        for statement in _on_each_lap(loop.body)
    )


def _on_each_lap(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in block:
        yield statement
        if isinstance(statement, ast.With):
            yield from _on_each_lap(statement.body)


def _is_averaged(file: FileModel, read: ast.Name) -> bool:
    """``sum(losses) / len(losses)``, ``np.mean(losses)``, ``torch.stack(losses).mean()``."""
    parent = file.index.parents.get(read)
    return isinstance(parent, ast.Call) and last_name(parent.func) in _AVERAGES


def _set_to_zero_before(file: FileModel, loop: ast.For) -> set[str]:
    """Names that are zero before the loop, on each lap of what is around it."""
    scope, around = file.index.scope(loop), loop_around(file, loop)
    return {
        item.id
        for statement in file.nodes(ast.Assign)
        if statement.lineno < loop.lineno
        and file.index.scope(statement) is scope
        and loop_around(file, statement) is around
        for target, value in _pairs(statement)
        if _is_zero(value)
        for item in ast.walk(target)
        if isinstance(item, ast.Name)
    }


def _pairs(statement: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets and values of ``a = b = 0`` and of ``a, b = 0, 0``."""
    for target in statement.targets:
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            yield from zip(target.elts, statement.value.elts, strict=False)
        else:
            yield target, statement.value


def _is_zero(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value == 0


def _is_score(name: str) -> bool:
    return looks_like_loss_result(name) or better_when(name) is not None


def _accumulated(loop: ast.For) -> set[str]:
    """Names that hold more than one batch: summed up, appended to, or made from such."""
    found: set[str] = set()
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign):
            found.add(_root(node.target))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            found |= (
                {_root(node.value.func)} if isinstance(node.value.func, ast.Attribute) else set()
            )
        elif isinstance(node, ast.Assign) and any(
            _root(target) in _names(node.value) or isinstance(target, ast.Subscript)
            for target in node.targets
        ):
            found |= {_root(target) for target in node.targets}
    for _ in range(4):
        for node in ast.walk(loop):
            if isinstance(node, ast.Assign) and _names(node.value) & found:
                found |= {_root(target) for target in node.targets if isinstance(target, ast.Name)}
    return found


def _is_of_this_batch(loop: ast.For, assigned: ast.Assign, accumulated: set[str]) -> bool:
    """Whether the value is computed from what this lap holds, and from nothing that lasts."""
    local = {
        node.id
        for node in ast.walk(loop)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    used = _names(assigned.value)
    has_call = any(isinstance(node, ast.Call) for node in ast.walk(assigned.value))
    return has_call and bool(used & (local - accumulated)) and not used & accumulated


def _is_used_in(loop: ast.For, target: ast.Name) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == target.id and isinstance(node.ctx, ast.Load)
        for node in ast.walk(loop)
    )


def _first_read_after(file: FileModel, loop: ast.For, target: ast.Name) -> ast.Name | None:
    """Where the name is read next in the function, if nothing binds it again before."""
    function = file.index.scope(loop)
    later = [
        node
        for node in file.nodes(ast.Name)
        if node.id == target.id
        and node.lineno > (loop.end_lineno or loop.lineno)
        and file.index.scope(node) is function
    ]
    later.sort(key=lambda node: (node.lineno, isinstance(node.ctx, ast.Store), node.col_offset))
    if not later or isinstance(later[0].ctx, ast.Store):
        return None
    is_next_lap = loop_around(file, later[0]) is not loop_around(file, loop)
    return None if is_next_lap and loop_around(file, later[0]) is not None else later[0]


def _names(node: ast.AST) -> set[str]:
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
