"""Parts of a network whose parameters are frozen, and what of them goes on changing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainlint.analysis.receivers import assigned_values, last_name, unchained

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

_ZOO_WITH_NORM = re.compile(
    r"^torchvision\.models\.(\w+\.)*(resnet|resnext|wide_resnet|densenet|mobilenet|efficientnet|"
    r"inception|googlenet|shufflenet|regnet|mnasnet|vgg\d+_bn)"
)
_NAMED_WITH_NORM = re.compile(r"resnet|resnext|densenet|mobilenet|efficientnet|inception|regnet")
_FACTORIES = frozenset({"timm.create_model", "torch.hub.load"})
_KEPT_STILL = re.compile(
    r"FrozenBatchNorm|track_running_stats|\.momentum\s*=\s*0|set_bn_eval|freeze_bn|bn_eval|"
    r"isinstance\([^)]*(BatchNorm|_BatchNorm|\bBN)",
)


@dataclass(frozen=True)
class Frozen:
    """``requires_grad = False`` for all parameters of ``module``."""

    node: ast.stmt
    module: ast.expr

    @property
    def model(self) -> ast.expr:
        """The whole model that a frozen part belongs to: ``model`` of ``model.backbone.layer1``."""
        node = self.module
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            is_own = isinstance(node.value, ast.Name) and node.value.id == "self"
            if is_own and isinstance(node, ast.Attribute):
                return node
            node = node.value
        return node


def frozen_parts(file: FileModel) -> Iterator[Frozen]:
    """All modules of the file whose parameters are frozen as a whole."""
    for loop in file.nodes(ast.For):
        module = _whose_parameters(loop.iter)
        if module is not None and any(_freezes(statement) for statement in loop.body):
            yield Frozen(loop, module)
    for statement in file.nodes(ast.Expr):
        call = statement.value
        is_method = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        if is_method and _freezes(statement):
            assert isinstance(call, ast.Call)
            assert isinstance(call.func, ast.Attribute)
            if not isinstance(file.index.parents.get(statement), ast.For):
                yield Frozen(statement, call.func.value)


def _whose_parameters(iterated: ast.expr) -> ast.expr | None:
    is_method = isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Attribute)
    if not is_method or last_name(iterated) not in ("parameters", "named_parameters"):
        return None
    assert isinstance(iterated, ast.Call)
    assert isinstance(iterated.func, ast.Attribute)
    return iterated.func.value


def _freezes(statement: ast.stmt) -> bool:
    """``p.requires_grad = False`` or ``p.requires_grad_(False)``, on every lap."""
    if isinstance(statement, ast.Assign):
        target, value = statement.targets[0], statement.value
        is_flag = isinstance(target, ast.Attribute) and target.attr == "requires_grad"
        return is_flag and isinstance(value, ast.Constant) and value.value is False
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    call = statement.value
    first = call.args[0] if call.args else None
    return (
        last_name(call) == "requires_grad_"
        and isinstance(first, ast.Constant)
        and first.value is False
    )


def has_batch_norm(file: FileModel, model: ast.expr) -> bool:
    """Whether a model surely holds batch norm, as the name says that its library knows it by."""
    for value in assigned_values(file, model):
        made = unchained(value)
        if not isinstance(made, ast.Call):
            continue
        dotted = file.qualified(made.func) or ""
        if _ZOO_WITH_NORM.search(dotted):
            return True
        if dotted in _FACTORIES and _NAMED_WITH_NORM.search(ast.unparse(made)):
            return True
    return False


def is_kept_still(file: FileModel, frozen: Frozen) -> bool:
    """Whether something puts the frozen part, or all batch norm, in eval mode or stops it."""
    if _KEPT_STILL.search(file.source.text):
        return True
    part = ast.unparse(frozen.module)
    owner = file.enclosing_class(frozen.node)
    if owner is not None and "train" in owner.own_methods:
        return True
    return any(
        isinstance(call.func, ast.Attribute)
        and (call.func.attr == "eval" or (call.func.attr == "train" and _is_false(call)))
        and f"{ast.unparse(call.func.value)}.".startswith(f"{part}.")
        and not (part == ast.unparse(frozen.model) and _trains_later(file, call))
        for call in file.nodes(ast.Call)
    )


def _is_false(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and not call.args[0].value


def _trains_later(file: FileModel, switch: ast.Call) -> bool:
    """An ``eval()`` of the whole model for a validation; the file also says ``train()``."""
    assert isinstance(switch.func, ast.Attribute)
    return trains(file, switch.func.value)


def trains(file: FileModel, model: ast.expr) -> bool:
    """Whether the file switches the model to train mode, and not to eval mode in its place."""
    text = ast.unparse(model)
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "train"
        and ast.unparse(call.func.value) == text
        and len(call.args) + len(call.keywords) <= 1
        and not _is_false(call)
        and not _has_eval_branch(file, call)
        for call in file.nodes(ast.Call)
    )


def _has_eval_branch(file: FileModel, call: ast.Call) -> bool:
    """``if fine_tune: model.train() else: model.eval()``."""
    assert isinstance(call.func, ast.Attribute)
    wanted = f"{ast.unparse(call.func.value)}.eval()"
    choice = file.index.parents.get(file.index.statement(call))
    return isinstance(choice, ast.If) and any(wanted in ast.unparse(item) for item in choice.orelse)
