"""Which functions can matter for training: the rest is not followed when it is called."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from trainlint.analysis.definitions import ClassDefinition, FunctionDefinition
from trainlint.analysis.knowledge.losses import LOSS_CALL_TEXT
from trainlint.analysis.roles import Role, role
from trainlint.analysis.values import Choice, Constant, External, Group, Object, Unknown, Value

TRAINING_WORDS = frozenset(
    {
        "backward",
        "zero_grad",
        "step",
        "eval",
        "train",
        "no_grad",
        "inference_mode",
        "set_epoch",
        "set_grad_enabled",
        "cross_entropy",
        "nll_loss",
        "binary_cross_entropy",
        "kl_div",
        "mse_loss",
        "binary_cross_entropy_with_logits",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "DataLoader",
        "optim",
        "parameters",
        "state_dict",
        "load_state_dict",
        "manual_backward",
        "unscale_",
        "poisson_nll_loss",
        "gaussian_nll_loss",
        "cosine_embedding_loss",
        "sigmoid_focal_loss",
        "hinge_embedding_loss",
        "soft_margin_loss",
        "multilabel_soft_margin_loss",
        "save",
        "load",
        "all_reduce",
        "barrier",
        "all_gather",
    }
)
_LOSS_CALL = re.compile(LOSS_CALL_TEXT)
_BUILDING_WORDS = frozenset(
    {"nn", "F", "torch", "functional", "deepcopy", "autocast", "GradScaler"}
)


def speaks_of_training(function: FunctionDefinition) -> bool:
    """Whether a verb of training, or a loss, is called or read as an attribute inside."""
    words = function.vocabulary
    return not words.isdisjoint(TRAINING_WORDS) or any(map(_names_loss_or_loader, words))


@lru_cache(maxsize=10_000)
def _names_loss_or_loader(word: str) -> bool:
    return _LOSS_CALL.search(f"{word}(") is not None or "loader" in word.lower()


def leads_to_training(function: FunctionDefinition, depth: int = 3) -> bool:
    """Whether a function speaks of training, or calls one of its file or class that does."""
    if speaks_of_training(function):
        return True
    return depth > 0 and any(
        leads_to_training(callee, depth - 1)
        for call in function.calls
        if (callee := _neighbour(function, call.func)) is not None and callee is not function
    )


def _neighbour(function: FunctionDefinition, callee: ast.expr) -> FunctionDefinition | None:
    if isinstance(callee, ast.Name):
        return function.file.functions.get(callee.id)
    if not isinstance(callee, ast.Attribute) or not isinstance(callee.value, ast.Name):
        return None
    is_own = function.owner is not None and callee.value.id == "self"
    return function.owner.own_methods.get(callee.attr) if is_own and function.owner else None


def matters(function: FunctionDefinition) -> bool:
    """Whether a function, or one that it calls, trains, evaluates, or builds what does."""
    known = function.file.project.relevance
    if function not in known:
        known[function] = False
        known[function] = (
            speaks_of_training(function)
            or not function.names_read.isdisjoint(_BUILDING_WORDS)
            or any(_call_matters(function, call) for call in function.calls)
        )
    return known[function]


def _call_matters(function: FunctionDefinition, call: ast.Call) -> bool:
    callee = call.func
    if not isinstance(callee, (ast.Name, ast.Attribute)):
        return True
    if isinstance(callee, ast.Name) and any(callee.id == item.arg for item in function.parameters):
        return True
    is_own = isinstance(callee, ast.Attribute) and isinstance(callee.value, ast.Name)
    if is_own and function.owner is not None and ast.unparse(callee).startswith("self."):
        method = function.owner.method(ast.unparse(callee).removeprefix("self."))
        return method is None or matters(method)
    found = function.file.resolve(callee)
    if isinstance(found, ClassDefinition):
        constructor = found.method("__init__")
        return found.is_module or (constructor is not None and matters(constructor))
    return isinstance(found, FunctionDefinition) and matters(found)


def is_plain(value: Value) -> bool:
    """Whether a value is a setting rather than something that trains or is trained."""
    if isinstance(value, Choice):
        return all(is_plain(option) for option in value.options)
    if isinstance(value, Group):
        return all(is_plain(element) for element in value.elements)
    if isinstance(value, External):
        return not value.dotted.startswith("torch.")
    if isinstance(value, (Unknown, Object)):
        return role(value)[0] is Role.OTHER and not (
            isinstance(value, Object) and value.dotted.startswith(("torch", "state_dict"))
        )
    return isinstance(value, Constant)
