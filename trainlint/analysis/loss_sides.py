"""Which side of a loss is the prediction and which the target, by data flow and by name."""

from __future__ import annotations

import ast
import enum
import re
from dataclasses import dataclass

from trainlint.analysis.file_model import FileModel
from trainlint.analysis.knowledge.losses import CROSS_ENTROPY, KL_DIV, NLL
from trainlint.analysis.loss_calls import LossCall
from trainlint.analysis.tensor_expressions import is_integer
from trainlint.analysis.values import Object, Tensor, Value, options


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


_NEW_DATA = frozenset(f"torch.{name}" for name in ("zeros", "ones", "zeros_like", "ones_like"))
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
    flow = _side_of_flow(call, call.input if position == 0 else call.target)
    name = _name(call.file, call.node.args[position])
    return Evidence(_by_name(name), flow, flow is None and bool(_EITHER.search(name)))


def are_classes_first(call: LossCall) -> bool:
    """Whether a loss over classes certainly gets their indices first, or scores second.

    Indices are integers, which no prediction is. Scores straight out of a linear layer are neither
    indices nor probabilities; nor is an output that is called one and carries a graph.
    """
    if call.kind not in (CROSS_ENTROPY, NLL):
        return False
    first, second = call.node.args[0], call.node.args[call.kind.target_position]
    if is_integer(call.file, first):
        return not is_integer(call.file, second)
    given, target = evidence_of(call, 0), evidence_of(call, call.kind.target_position)
    if Side.PREDICTION in (given.by_name, given.by_flow) or target.by_name is Side.TARGET:
        return False
    activations = {getattr(item, "activation", None) for item in options(call.target)}
    if activations == {"linear"} or (call.kind is NLL and activations == {"log_softmax"}):
        return True
    return target.by_name is target.by_flow is Side.PREDICTION


def is_detached_output(value: Value) -> bool:
    """Whether a value came out of a model and was cut off its graph: a target made on purpose."""
    return all(
        isinstance(item, Tensor) and item.detached and "model" in item.origins
        for item in options(value)
    )


def _side_of_flow(call: LossCall, value: Value) -> Side | None:
    """New data, as of ``torch.zeros``, is a target, where the sides of the loss differ at all."""
    found = list(options(value))
    is_new = all(isinstance(item, Object) and item.dotted in _NEW_DATA for item in found)
    if is_new and not call.kind.symmetric and call.kind is not KL_DIV:
        return Side.TARGET
    return _by_flow(value)


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
    """The name that a value goes by, below casts, views, items, scaling and joining."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        return _telling_name(file, [node.left, node.right])
    if isinstance(node, (ast.List, ast.Tuple)):
        return _telling_name(file, node.elts)
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


def _telling_name(file: FileModel, parts: list[ast.expr]) -> str:
    """The first name that speaks of a side, if no other speaks of the other one."""
    telling = [name for part in parts if _by_name(name := _name(file, part)) is not None]
    return telling[0] if len({_by_name(name) for name in telling}) == 1 else ""


_VIEWS = frozenset(
    {
        "view", "reshape", "squeeze", "unsqueeze", "permute", "transpose", "flatten", "contiguous",
        "float", "double", "half", "long", "int", "bool", "to", "cuda", "cpu", "type", "type_as",
        "clone", "detach", "view_as", "expand", "expand_as", "t", "clamp", "log", "sigmoid",
        "softmax", "log_softmax", "exp", "byte", "bfloat16",
    }
)  # fmt: skip
