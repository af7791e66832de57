"""Averaged copies of a model: when they are updated, and against which steps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis.receivers import last_name, receiver_role
from trainlint.analysis.roles import Role
from trainlint.analysis.swaps import is_average

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

_UPDATES = frozenset(
    {
        "update", "update_parameters", "update_model_average", "step", "step_ema", "update_ema",
        "ema_update", "ema_step", "update_moving_average",
    }
)  # fmt: skip
_OF_NUMBERS = re.compile(
    r"loss|acc(?!el)|(?<!para)meter|metric|norm|reward|time|speed|score|\.item\(", re.IGNORECASE
)
_ACCUMULATES = re.compile(r"%|sync_gradients|accum", re.IGNORECASE)
_AVERAGE_CLASS = re.compile(
    r"^(Model|Weight|LitEma|Diff)?(EMA|Ema)(Model|V\d|Helper|Weights)?$|^Model_?E[mM][aA](V\d)?$"
    r"|^ExponentialMovingAverage$|^AveragedModel$|^LitEma$"
)
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def average_updates(file: FileModel) -> Iterator[ast.Call]:
    """The calls that move an averaged model on: ``ema.update(model)``, ``update_ema(...)``."""
    for call in file.nodes(ast.Call):
        if last_name(call) not in _UPDATES or not is_average(call.func):
            continue
        if not _OF_NUMBERS.search(ast.unparse(call)) and _is_about_models(file, call):
            yield call


def _is_about_models(file: FileModel, call: ast.Call) -> bool:
    return not call.args or any(
        (isinstance(argument, ast.Call) and last_name(argument) in ("parameters", "state_dict"))
        or receiver_role(file, argument)[0] is Role.MODULE
        for argument in call.args
    )


def optimizer_steps(file: FileModel) -> Iterator[ast.Call]:
    """The calls ``optimizer.step()`` and ``scaler.step(optimizer)``, as far as names tell."""
    for call in file.nodes(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "step":
            role, _ = receiver_role(file, call.func.value)
            if role in (Role.OPTIMIZER, Role.SCALER) and not is_average(call.func.value):
                yield call


def innermost_loop(file: FileModel, node: ast.AST) -> ast.AST | None:
    """The innermost loop of the same function around a node."""
    return next((item for item in _around(file, node) if isinstance(item, _LOOPS)), None)


def waits_for_gradients(file: FileModel, node: ast.AST) -> ast.AST | None:
    """The ``if`` in its loop, or ``with accumulate``, that lets a step happen only now and then."""
    for item in _around(file, node):
        if isinstance(item, _LOOPS):
            return None
        if isinstance(item, ast.If) and _ACCUMULATES.search(ast.unparse(item.test)):
            return item
        if isinstance(item, (ast.With, ast.AsyncWith)) and _accumulates(item):
            return item
    return None


def _accumulates(block: ast.With | ast.AsyncWith) -> bool:
    return any(
        isinstance(item.context_expr, ast.Call) and last_name(item.context_expr) == "accumulate"
        for item in block.items
    )


def is_under_some_condition(file: FileModel, node: ast.AST, inside: ast.AST) -> bool:
    """Whether an ``if`` on steps, between a node and a block around it, decides about the node."""
    for item in _around(file, node):
        if item is inside:
            return False
        if isinstance(item, ast.If) and re.search(
            r"%|sync|accum|step|iter", ast.unparse(item.test), re.IGNORECASE
        ):
            return True
    return False


def _around(file: FileModel, node: ast.AST) -> Iterator[ast.AST]:
    current = file.index.parents.get(node)
    while current is not None and not isinstance(current, _FUNCTIONS):
        yield current
        current = file.index.parents.get(current)


def never_updated(file: FileModel) -> Iterator[ast.Call]:
    """Averaged models that training code makes and reads, and never moves on nor hands on."""
    for statement in file.nodes(ast.Assign):
        made, target = statement.value, statement.targets[0]
        if not isinstance(made, ast.Call) or not _AVERAGE_CLASS.search(last_name(made)):
            continue
        if isinstance(target, ast.Name) and _is_only_read(file, statement, target):
            yield made


def _is_only_read(file: FileModel, statement: ast.Assign, target: ast.Name) -> bool:
    """Whether the rest of the function reads attributes of a variable, and does nothing else."""
    scope = file.index.scope(statement)
    bound = file.index.bindings(target.id, scope)
    uses = [
        node
        for node in file.nodes(ast.Name)
        if node.id == target.id
        and isinstance(node.ctx, ast.Load)
        and file.index.bindings(node.id, file.index.scope(node)) is bound
    ]
    inside = [node for node in uses if file.index.scope(node) is scope]
    trains = any(
        last_name(call) == "backward" and file.index.enclosing_function(call) is scope
        for call in file.nodes(ast.Call)
    )
    if not inside or not trains or len(inside) < len(uses):
        return False
    return all(_reads_attribute(file, node) for node in inside)


def _reads_attribute(file: FileModel, node: ast.Name) -> bool:
    parent = file.index.parents.get(node)
    if isinstance(parent, ast.Attribute):
        return not re.search(r"update|step|register|average|regist|decay", parent.attr)
    return isinstance(parent, (ast.IfExp, ast.If, ast.BoolOp, ast.Compare, ast.UnaryOp))
