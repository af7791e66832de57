"""Other weights put into a model for a while: averaged ones, for validation or saving."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis.knowledge import training
from trainlint.analysis.receivers import assigned_values, last_name, receiver_role
from trainlint.analysis.roles import Role

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel
    from trainlint.analysis.kept_states import KeptState

AVERAGE = (
    r"(^|_)ema(_|$|\d)|^ema|ema$|EMA|Ema|moving_?average|averaged?_?model|shadow|(^|_)swa(_|$)"
)
"""How people name averaged copies of a model."""
_AVERAGE = re.compile(AVERAGE)
_SWAPS = frozenset({"copy_to", "apply_shadow", "swap", "apply_to", "swap_in"})


def is_average(node: ast.expr) -> bool:
    """Whether people would name an averaged copy of a model so."""
    return any(
        _AVERAGE.search(part.id if isinstance(part, ast.Name) else part.attr)
        for part in ast.walk(node)
        if isinstance(part, (ast.Name, ast.Attribute))
    )


def swaps_weights_between(file: FileModel, kept: KeptState, restores: list[ast.Call]) -> bool:
    """Whether other weights are put in between keeping a state and loading it back."""
    first, last = kept.statement.lineno, max(call.lineno for call in restores)
    return any(
        first < call.lineno < last
        and call not in restores
        and (
            last_name(call) in _SWAPS
            or (
                last_name(call) == "load_state_dict"
                and isinstance(call.func, ast.Attribute)
                and ast.unparse(call.func.value) == ast.unparse(kept.model)
            )
        )
        for call in file.nodes(ast.Call)
    )


def swaps_in_training(file: FileModel) -> Iterator[ast.Call]:
    """Calls in a loop that trains which put an average into the model, and are never undone."""
    for call in file.nodes(ast.Call):
        loop = _training_loop(file, call) if _puts_average_in(file, call) else None
        if loop is None or _is_at_the_end(file, call, loop) or _is_undone(file, call):
            continue
        if _is_trained(file, call, loop):
            yield call


def _puts_average_in(file: FileModel, call: ast.Call) -> bool:
    """``ema.copy_to(model.parameters())``, or ``model.load_state_dict(ema.state_dict())``."""
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr in ("copy_to", "apply_shadow"):
        target = call.args[0] if call.args else None
        return is_average(call.func.value) and not (target is not None and is_average(target))
    return (
        call.func.attr == "load_state_dict"
        and bool(call.args)
        and is_average(call.args[0])
        and not is_average(call.func.value)
        and receiver_role(file, call.func.value)[0] is Role.MODULE
        and last_name(call.args[0]) == "state_dict"
    )


def _is_trained(file: FileModel, swap: ast.Call, loop: ast.stmt) -> bool:
    """Whether the model that takes the average is the one that the loop trains, and no copy."""
    model = _taker(swap)
    if model is None:
        return True
    if any("copy" in ast.unparse(value) for value in assigned_values(file, model)):
        return False
    text = ast.unparse(model)
    for call in file.nodes(ast.Call):
        handed = [ast.unparse(item) for item in (*call.args, *(k.value for k in call.keywords))]
        is_inside = loop.lineno <= call.lineno <= (loop.end_lineno or loop.lineno)
        if is_inside and (
            ast.unparse(call.func) == text
            or (text in handed and re.search(r"train|step|loss", last_name(call)))
        ):
            return True
        if training.is_optimizer_class(file.qualified(call.func) or "") and any(
            item.startswith(f"{text}.") for item in handed
        ):
            return True
    return False


def _taker(swap: ast.Call) -> ast.expr | None:
    """``model`` of ``ema.copy_to(model.parameters())`` and of ``model.load_state_dict(...)``."""
    assert isinstance(swap.func, ast.Attribute)
    if swap.func.attr == "load_state_dict":
        return swap.func.value
    taker = swap.args[0] if swap.args else None
    is_method = isinstance(taker, ast.Call) and isinstance(taker.func, ast.Attribute)
    return taker.func.value if is_method else taker  # type: ignore[union-attr]


def _training_loop(file: FileModel, call: ast.Call) -> ast.stmt | None:
    """The outermost loop of the function around a call, if it also trains by itself."""
    found: ast.stmt | None = None
    node = file.index.parents.get(call)
    while node is not None and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if isinstance(node, (ast.For, ast.While)) and _trains(node):
            found = node
        node = file.index.parents.get(node)
    return found


def _trains(loop: ast.For | ast.While) -> bool:
    return any(
        isinstance(item, ast.Call)
        and (last_name(item) == "backward" or re.search(r"^_?train(_|$)", last_name(item)))
        and not (last_name(item) == "train" and len(item.args) < 2)
        for item in ast.walk(loop)
    )


def _is_at_the_end(file: FileModel, call: ast.Call, loop: ast.stmt) -> bool:
    """Whether it happens once, in the last lap, or before the loop is left."""
    node: ast.AST | None = call
    while node is not None and node is not loop:
        parent = file.index.parents.get(node)
        if isinstance(parent, ast.If):
            leaves = isinstance(parent.body[-1], (ast.Break, ast.Return, ast.Raise))
            test = ast.unparse(parent.test)
            is_last = re.search(r"==|last|final|finish|done", test) and "%" not in test
            if leaves or is_last:
                return True
        node = parent
    return False


def _is_undone(file: FileModel, call: ast.Call) -> bool:
    """Whether the function restores, or loads a state back into the same model."""
    function = file.index.enclosing_function(call)
    model = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    return any(
        other is not call
        and file.index.enclosing_function(other) is function
        and other.lineno > call.lineno
        and (
            re.search(r"restore|swap|resume|revert", last_name(other))
            or (
                last_name(other) == "load_state_dict"
                and isinstance(other.func, ast.Attribute)
                and (ast.unparse(other.func.value) == model or last_name(call) != "load_state_dict")
            )
        )
        for other in file.nodes(ast.Call)
    )
