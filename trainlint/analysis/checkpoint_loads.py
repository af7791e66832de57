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
    """Whether what is loaded goes into a ``load_state_dict``, at once or under a name."""
    if any(_is_load_state_dict(parent) for parent in _around(file, call)):
        return True
    name = bound_name(file, call)
    return name is not None and any(
        _is_load_state_dict(parent)
        for use in file.nodes(ast.Name)
        if use.id == name and isinstance(use.ctx, ast.Load)
        for parent in _around(file, use)
    )


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
