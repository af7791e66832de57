"""Which side of a loss is the prediction and which the target, by data flow and by name."""

from __future__ import annotations

import ast
import enum
import re
from dataclasses import dataclass

from trainlint.analysis.file_model import FileModel
from trainlint.analysis.loss_calls import LossCall
from trainlint.analysis.values import Tensor, Value, options


class Side(enum.Enum):
    """What an argument of a loss is."""

    PREDICTION = "prediction"
    TARGET = "target"


@dataclass(frozen=True)
class Evidence:
    """What an argument's name says and what its data flow says; None: nothing.

    ``is_weak``: there is only a name that is used for either side at times.
    """

    by_name: Side | None
    by_flow: Side | None
    is_weak: bool = False

    @property
    def side(self) -> Side | None:
        """The side, unless name and flow contradict each other."""
        if (
            self.by_name is not None
            and self.by_flow is not None
            and self.by_name is not self.by_flow
        ):
            return None
        return self.by_name or self.by_flow


_PREDICTION = re.compile(
    r"(^|_)(pred|preds|predicted|prediction|predictions|logit|logits|output|outputs|out|recon|recons|"
    r"reconstruction|reconstructed|yhat)(_|\d|$)|^y_?hat|_hat$",
    re.IGNORECASE,
)
_TARGET = re.compile(
    r"(^|_)(target|targets|label|labels|gt|gts|true|truth|gold|groundtruth)(_|\d|$)|^(y|ys|yb|y_batch|batch_y|tgt)$",
    re.IGNORECASE,
)
_EITHER = re.compile(r"^(y|ys|yb|out|outs)$", re.IGNORECASE)


def evidence_of(call: LossCall, position: int) -> Evidence:
    """What is known about a positional argument of a loss."""
    flow = _by_flow(call.input if position == 0 else call.target)
    name = _name(call.file, call.node.args[position])
    return Evidence(_by_name(name), flow, flow is None and bool(_EITHER.search(name)))


def is_detached_output(value: Value) -> bool:
    """Whether a value came out of a model and was cut off its graph: a target made on purpose."""
    return all(
        isinstance(item, Tensor) and item.detached and "model" in item.origins
        for item in options(value)
    )


def _by_flow(value: Value) -> Side | None:
    found = list(options(value))
    tensors = [item for item in found if isinstance(item, Tensor)]
    if not tensors or len(tensors) != len(found):
        return None
    if all("model" in item.origins and not item.detached for item in tensors):
        return Side.PREDICTION
    if all(item.activation in ("sigmoid", "softmax", "log_softmax") for item in tensors):
        return Side.PREDICTION
    plain = all(item.origins == {"batch"} and item.activation is None for item in tensors)
    return Side.TARGET if plain else None


def _by_name(name: str) -> Side | None:
    is_prediction, is_target = bool(_PREDICTION.search(name)), bool(_TARGET.search(name))
    if is_prediction is is_target:
        return None
    return Side.PREDICTION if is_prediction else Side.TARGET


def _name(file: FileModel, node: ast.expr) -> str:
    """The name that a value goes by, below casts, views and items."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr if node.attr not in ("data", "T") else _name(file, node.value)
    if isinstance(node, ast.Subscript):
        key = node.slice
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            return key.value
        return _name(file, node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
        is_library = (file.qualified(node.func) or "").startswith("torch.")
        if is_library:
            return _name(file, node.args[0]) if node.args else ""
        if isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
            return _name(file, node.func.value)
    return ""


_VIEWS = frozenset(
    {
        "view", "reshape", "squeeze", "unsqueeze", "permute", "transpose", "flatten", "contiguous",
        "float", "double", "half", "long", "int", "bool", "to", "cuda", "cpu", "type", "type_as",
        "clone", "detach", "view_as", "expand", "expand_as", "t", "clamp", "log", "sigmoid",
        "softmax", "log_softmax", "exp", "byte", "bfloat16",
    }
)  # fmt: skip
