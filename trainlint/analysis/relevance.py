"""Which functions can matter for training: the rest is not followed when it is called."""

from __future__ import annotations

import ast

from trainlint.analysis.definitions import ClassDefinition, FunctionDefinition
from trainlint.analysis.roles import Role, role
from trainlint.analysis.values import Choice, Constant, External, Group, Object, Unknown, Value

TRAINING_WORDS = frozenset(
    {
        "backward", "zero_grad", "step", "eval", "train", "no_grad", "inference_mode", "set_epoch",
        "set_grad_enabled", "cross_entropy", "nll_loss", "binary_cross_entropy", "kl_div", "mse_loss",
        "binary_cross_entropy_with_logits", "l1_loss", "smooth_l1_loss", "huber_loss", "DataLoader",
        "optim", "parameters", "state_dict", "load_state_dict", "manual_backward", "unscale_",
        "poisson_nll_loss", "gaussian_nll_loss", "cosine_embedding_loss", "sigmoid_focal_loss",
        "hinge_embedding_loss", "soft_margin_loss", "multilabel_soft_margin_loss", "save", "load",
        "all_reduce", "barrier", "all_gather",
    }
)  # fmt: skip
_BUILDING_WORDS = frozenset({"nn", "F", "torch", "functional", "deepcopy", "autocast", "GradScaler"})


def speaks_of_training(node: ast.AST) -> bool:
    """Whether a verb of training, or a loss, is called or named somewhere inside."""
    for item in ast.walk(node):
        if isinstance(item, ast.Attribute) and item.attr in TRAINING_WORDS:
            return True
        if isinstance(item, ast.Name) and item.id in TRAINING_WORDS:
            return True
        if isinstance(item, ast.Call) and isinstance(item.func, (ast.Name, ast.Attribute)):
            name = item.func.id if isinstance(item.func, ast.Name) else item.func.attr
            if "loss" in name.lower() or "criteri" in name.lower():
                return True
    return False


def matters(function: FunctionDefinition) -> bool:
    """Whether a function, or one that it calls, trains, evaluates, or builds what does."""
    known = function.file.project.relevance
    if function not in known:
        known[function] = False
        known[function] = _matters(function)
    return known[function]


def _matters(function: FunctionDefinition) -> bool:
    if speaks_of_training(function.node):
        return True
    for item in ast.walk(function.node):
        if isinstance(item, ast.Name) and item.id in _BUILDING_WORDS:
            return True
        if isinstance(item, ast.Call) and _call_matters(function, item):
            return True
    return False


def _call_matters(function: FunctionDefinition, call: ast.Call) -> bool:
    parameters = {parameter.arg for parameter in function.parameters}
    callee = call.func
    if isinstance(callee, ast.Name) and callee.id in parameters:
        return True
    if isinstance(callee, ast.Attribute) and isinstance(callee.value, ast.Name):
        if function.owner is not None and callee.value.id == "self":
            method = function.owner.method(callee.attr)
            return method is None or matters(method)
    if not isinstance(callee, (ast.Name, ast.Attribute)):
        return True
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
