"""Calls of ``torch.load`` and what becomes of what they read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis.receivers import last_name
from trainlint.analysis.roles import Role, by_name
from trainlint.scout import identifier, pattern, text

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

TORCH_LOAD = (
    identifier("torch")
    & identifier("load")
    & (text("torch.load") | pattern(rb"torch\s+(?:as\b|import\s(?:[^\n]*\bload\b|\())"))
)
"""The scout of all rules about ``torch.load``."""
_SOUNDS_LIKE_WEIGHTS = re.compile(
    r"ckpt|checkpoint|weight|resume|snapshot|pretrain|state_?dict|\.pth\b|\bmodels?\b|_model|model_"
    r"|^net|(^|\W)(net|G|D)(_|\W|$)",
    re.IGNORECASE,
)
_MAX_NAMES = 4
_DATA = re.compile(
    r"data|vocab|corpus|cache|token|label|split|feature|embedding|queue|memory|index"
)


def checkpoint_loads(file: FileModel) -> Iterator[ast.Call]:
    """All calls of ``torch.load`` whose arguments are visible."""
    for call in file.calls("torch.load"):
        is_spread = any(keyword.arg is None for keyword in call.keywords) or any(
            isinstance(argument, ast.Starred) for argument in call.args
        )
        if not is_spread:
            yield call


def argument_of(call: ast.Call, position: int, keyword: str) -> ast.expr | None:
    """What a call passes for a parameter, by position or by keyword."""
    for given in call.keywords:
        if given.arg == keyword:
            return given.value
    return call.args[position] if position < len(call.args) else None


def becomes_weights(file: FileModel, call: ast.Call) -> bool:
    """Whether what is loaded goes into a ``load_state_dict``, at once or under a name.

    The name may be that of a selection, or of a state that the selection updates.
    """
    if any(_is_load_state_dict(parent) for parent in _around(file, call)):
        return True
    name = bound_name(file, call)
    names = {name} if name is not None else set()
    for _ in range(_MAX_NAMES):
        uses = [use for use in file.nodes(ast.Name) if use.id in names and _is_read(use)]
        if any(_is_load_state_dict(parent) for use in uses for parent in _around(file, use)):
            return True
        passed_on = {kept for use in uses if (kept := _kept_under(file, use)) is not None}
        if passed_on <= names:
            return False
        names |= passed_on
    return False


def _is_read(use: ast.Name) -> bool:
    return isinstance(use.ctx, ast.Load)


def _kept_under(file: FileModel, use: ast.Name) -> str | None:
    """The name of a selection: ``state = {k: loaded[k] for k in keys}``, ``own.update(state)``."""
    statement = file.index.statement(use)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        is_selection = isinstance(statement.value, (ast.DictComp, ast.Subscript))
        return target.id if is_selection and isinstance(target, ast.Name) else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    is_update = call.func.attr == "update" and use in call.args
    return last_name(call.func.value) if is_update else None


def sounds_like_weights(file: FileModel, call: ast.Call) -> bool:
    """Whether the path, or the name of the result, speaks of a checkpoint and not of data."""
    if any(last_name(parent) == "load_state_dict" for parent in _around(file, call)):
        return False
    path = ast.unparse(call.args[0]) if call.args else ""
    words = f"{path} {bound_name(file, call) or ''}"
    return bool(_SOUNDS_LIKE_WEIGHTS.search(words)) and not _DATA.search(words)


def reads_own_file(file: FileModel, call: ast.Call) -> bool:
    """Whether the same file writes through a handle of the same name: ``with open(p) as f``."""
    handle = call.args[0] if call.args else None
    if not isinstance(handle, ast.Name):
        return False
    opened = any(
        isinstance(item.optional_vars, ast.Name)
        and item.optional_vars.id == handle.id
        and isinstance(item.context_expr, ast.Call)
        and last_name(item.context_expr) == "open"
        for block in file.nodes(ast.With)
        for item in block.items
    )
    return opened and any(
        len(save.args) > 1 and ast.unparse(save.args[1]) == handle.id
        for save in file.calls("torch.save")
    )


def bound_name(file: FileModel, call: ast.Call) -> str | None:
    """The variable that the result, or one element of it, is bound to."""
    statement = file.index.statement(call)
    is_bound = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    if not is_bound:
        return None
    assert isinstance(statement, ast.Assign)
    return last_name(statement.targets[0])


def _around(file: FileModel, node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that hold an expression, innermost first."""
    current = file.index.parents.get(node)
    while isinstance(current, (ast.expr, ast.keyword)):
        if isinstance(current, ast.expr):
            yield current
        current = file.index.parents.get(current)


def _is_load_state_dict(node: ast.AST) -> bool:
    """A schedule's state is numbers: no device matters to it."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    is_schedule = by_name(last_name(node.func.value)) is Role.SCHEDULER
    return node.func.attr == "load_state_dict" and not is_schedule
