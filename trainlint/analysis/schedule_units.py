"""In what a schedule counts, epochs or batches, told from the arguments that it was made with."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from trainlint.analysis.knowledge.training import LOADER_CLASSES, looks_like_loader
from trainlint.analysis.receivers import assigned_values, last_name
from trainlint.analysis.values import Constant, Group, Instance, Object, Value

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

BATCHES, EPOCHS = "batches", "epochs"
_LENGTHS = {
    "CosineAnnealingLR": (1, "T_max"),
    "OneCycleLR": (2, "total_steps"),
    "PolynomialLR": (1, "total_iters"),
    "get_linear_schedule_with_warmup": (2, "num_training_steps"),
    "get_cosine_schedule_with_warmup": (2, "num_training_steps"),
    "get_polynomial_decay_schedule_with_warmup": (2, "num_training_steps"),
}
_MOST_EPOCHS = 200
_STEEP_DROP = 0.5
_STEEP_DECAY = 0.97
_EPOCHS_NAME = re.compile(r"(^|_)(n_?|num_?|max_?|total_?)?epochs?$", re.IGNORECASE)
_MAX_EXPANSIONS = 3
_DIVISIONS = (ast.Div, ast.FloorDiv)


def counts_batches(scheduler: Object | Instance, file: FileModel) -> str | None:
    """The argument that makes the schedule last so many batches, as written; None if none does."""
    keyword, written = _length(scheduler)
    return _text(keyword, written) if _unit(file, written) == BATCHES else None


def counts_every_batch(scheduler: Object | Instance, file: FileModel) -> str | None:
    """As ``counts_batches``, but None where anything divides: by the batches of one step, say."""
    _, written = _length(scheduler)
    is_divided = written is not None and _is_divided(file, written)
    return None if is_divided else counts_batches(scheduler, file)


def _length(scheduler: Object | Instance) -> tuple[str, ast.expr | None]:
    """The argument that says how long the schedule lasts: its name, and what is written there."""
    if not isinstance(scheduler, Object):
        return "", None
    position, keyword = _LENGTHS.get(_name(scheduler), (0, ""))
    if _name(scheduler) == "OneCycleLR" and "steps_per_epoch" in scheduler.keywords:
        position, keyword = 4, "steps_per_epoch"
    return keyword, _written(scheduler, position, keyword) if keyword else None


def _is_divided(file: FileModel, written: ast.expr, depth: int = 0) -> bool:
    """Whether a number comes from a division, there or where its names are bound."""
    if isinstance(written, ast.Call) and last_name(written.func) == "len":
        return False
    if isinstance(written, ast.BinOp) and isinstance(written.op, _DIVISIONS):
        return True
    if isinstance(written, (ast.Name, ast.Attribute)) and written in file.index.parents:
        if ast.unparse(written) in _divided_in_place(file):
            return True
        values = list(assigned_values(file, written)) if depth < _MAX_EXPANSIONS else []
        return any(_is_divided(file, value, depth + 1) for value in values)
    parts = (part for part in ast.iter_child_nodes(written) if isinstance(part, ast.expr))
    return any(_is_divided(file, part, depth) for part in parts)


def _divided_in_place(file: FileModel) -> set[str]:
    return {
        ast.unparse(statement.target)
        for statement in file.nodes(ast.AugAssign)
        if isinstance(statement.op, _DIVISIONS)
    }


def counts_epochs(scheduler: Object | Instance, file: FileModel) -> str | None:
    """The argument that makes no sense in batches, as written; None if none does."""
    if not isinstance(scheduler, Object):
        return None
    name = _name(scheduler)
    if name == "CosineAnnealingLR":
        written = _written(scheduler, 1, "T_max")
        return _text("T_max", written) if _unit(file, written) == EPOCHS else None
    gamma = _number(scheduler.argument(1 if name == "ExponentialLR" else 2, "gamma"))
    if name == "ExponentialLR":
        is_steep = gamma is not None and gamma <= _STEEP_DECAY
        return _text("gamma", _written(scheduler, 1, "gamma")) if is_steep else None
    if name not in ("StepLR", "MultiStepLR"):
        return None
    if scheduler.argument(2, "gamma") is not None and (gamma is None or gamma > _STEEP_DROP):
        return None
    keyword = "step_size" if name == "StepLR" else "milestones"
    written = _written(scheduler, 1, keyword)
    given = scheduler.argument(1, keyword)
    return _text(keyword, written) if _is_few(given) or _unit(file, written) == EPOCHS else None


def _name(scheduler: Object) -> str:
    return scheduler.dotted.rpartition(".")[2]


def _text(keyword: str, written: ast.expr | None) -> str:
    return f"{keyword}={ast.unparse(written)}" if written is not None else keyword


def _written(scheduler: Object, position: int, keyword: str) -> ast.expr | None:
    for item in scheduler.node.keywords:
        if item.arg == keyword:
            return item.value
    arguments = scheduler.node.args
    return arguments[position] if position < len(arguments) else None


def _number(value: Value | None) -> float | None:
    is_number = isinstance(value, Constant) and isinstance(value.value, (int, float))
    return float(value.value) if is_number and isinstance(value, Constant) else None  # type: ignore[arg-type]


def _is_few(value: Value | None) -> bool:
    """A number, or numbers, that people write for epochs."""
    if isinstance(value, Group):
        return bool(value.elements) and all(_is_few(item) for item in value.elements)
    number = _number(value)
    return number is not None and number <= _MOST_EPOCHS


def _unit(file: FileModel, written: ast.expr | None, depth: int = 0) -> str | None:
    """``len(loader) * epochs`` is in batches, ``args.epochs`` in epochs."""
    if written is None or depth > _MAX_EXPANSIONS:
        return None
    if isinstance(written, ast.Call):
        if last_name(written.func) == "len" and len(written.args) == 1:
            return BATCHES if _is_loader(file, written.args[0]) else None
        is_cast = last_name(written.func) in ("int", "round", "ceil", "max", "min") and written.args
        return _unit(file, written.args[0], depth) if is_cast else None
    if isinstance(written, ast.BinOp):
        return _unit_of_operation(file, written, depth)
    if isinstance(written, ast.Subscript):
        return EPOCHS if _EPOCHS_NAME.search(_key(written)) else None
    if not isinstance(written, (ast.Name, ast.Attribute)) or written not in file.index.parents:
        return None
    assigned = list(assigned_values(file, written))
    if len(assigned) == 1 and _unit(file, assigned[0], depth + 1) == BATCHES:
        return BATCHES
    return EPOCHS if _EPOCHS_NAME.search(last_name(written)) and len(assigned) <= 1 else None


def _is_loader(file: FileModel, measured: ast.expr) -> bool:
    """By its name, or because every value that is bound to it is a new loader."""
    if looks_like_loader(last_name(measured)):
        return True
    is_bound = isinstance(measured, (ast.Name, ast.Attribute)) and measured in file.index.parents
    made = list(assigned_values(file, measured)) if is_bound else []
    return bool(made) and all(
        isinstance(value, ast.Call) and file.qualified(value.func) in LOADER_CLASSES
        for value in made
    )


def _key(item: ast.Subscript) -> str:
    """``epochs`` of ``config["training"]["epochs"]``."""
    is_text = isinstance(item.slice, ast.Constant) and isinstance(item.slice.value, str)
    return str(item.slice.value) if is_text and isinstance(item.slice, ast.Constant) else ""


def _unit_of_operation(file: FileModel, written: ast.BinOp, depth: int) -> str | None:
    left, right = _unit(file, written.left, depth), _unit(file, written.right, depth)
    if isinstance(written.op, ast.Mult):
        return BATCHES if BATCHES in (left, right) else None
    if isinstance(written.op, (ast.Add, ast.Sub)):
        return left if left == right or isinstance(written.right, ast.Constant) else None
    return left if right is None and isinstance(written.right, ast.Constant) else None
