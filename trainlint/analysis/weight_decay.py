"""Optimizers that decay every parameter of a model, and what the model is seen to hold."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainlint.analysis.callers import known_callers
from trainlint.analysis.file_model import FileModel
from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.knowledge import modules, training
from trainlint.analysis.roles import Role, has_role, owner_of_parameters, unwrapped
from trainlint.analysis.structure import layers
from trainlint.analysis.trace import EventKind, events
from trainlint.analysis.values import (
    Constant,
    Instance,
    Object,
    Parameters,
    Unknown,
    Value,
    options,
)

_GROUPS_ARE_SPLIT = re.compile(
    r"no_?decay|no_weight_decay|without_decay|skip_list|param_groups_weight_decay|optim_groups"
    r"|get_parameter_names|get_decay_parameter|param_groups?\b.*weight_decay|exclude_bias|decay_params"
    r"|exclude_from_weight_decay",
    re.IGNORECASE,
)
_PARTS_ARE_FROZEN = re.compile(
    r"requires_grad\s*=\s*False|requires_grad_\(False\)|freez|frozen|peft", re.IGNORECASE
)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_TORCH_OPTIMIZERS = frozenset(
    {"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad", "Adadelta", "SGD"}
)
_NEGLIGIBLE = 1e-6
_BATCH_NORMS = frozenset(name for name in modules.NORMALISING if "BatchNorm" in name)


@dataclass(frozen=True, eq=False)
class DecayOfAll:
    """An optimizer that decays all parameters of a model.

    ``held``: a normalisation or embedding layer that the model holds; None: the model's inside
    is not visible. ``is_default``: the decay is AdamW's own default. ``is_known``: the code shows
    how strong it is, so that it cannot be a 0 from a configuration.
    """

    optimizer: Object
    held: str | None
    is_default: bool
    is_known: bool


def decays_of_all(file: FileModel) -> Iterator[DecayOfAll]:
    """Optimizers made in this file that surely decay all parameters of one model."""
    if _GROUPS_ARE_SPLIT.search(file.source.text):
        return
    seen: dict[ast.Call, list[DecayOfAll | None]] = {}
    for run in file.runs:
        for made in _optimizers_made(file, run):
            seen.setdefault(made.node, []).append(_decay_of_all(file, made))
        if run.root is not None and any(
            found is not None and found.held is None for items in seen.values() for found in items
        ):
            for caller in known_callers(run):
                for made in _optimizers_made(file, caller):
                    seen.setdefault(made.node, []).append(_decay_of_all(file, made))
    for found in seen.values():
        yield from _agreed(found)


def _agreed(found: list[DecayOfAll | None]) -> Iterator[DecayOfAll]:
    """One answer for an optimizer that is reached in several ways; none if one of them is fine."""
    if None in found:
        return
    decays = [item for item in found if item is not None]
    yield next((item for item in decays if item.held is not None), decays[0])


def _optimizers_made(file: FileModel, run: Run) -> Iterator[Object]:
    for event in events(run.trace, EventKind.NEW):
        made = event.target
        if event.file is file and isinstance(made, Object) and _decays(made.dotted):
            yield made


def _decays(dotted: str) -> bool:
    head, _, last = dotted.rpartition(".")
    return (head == "torch.optim" and last in _TORCH_OPTIMIZERS) or (
        last in training.DECOUPLED_DECAY and head.startswith(("bitsandbytes", "transformers"))
    )


def _decay_of_all(file: FileModel, made: Object) -> DecayOfAll | None:
    given = [item.value for item in made.node.keywords if item.arg == "weight_decay"]
    decay = made.keywords.get("weight_decay")
    is_default = decay is None and "AdamW" in ast.unparse(made.node.func)
    is_default = is_default and _has_default_decay(made.dotted)
    owner = _whole_model(made.argument(0, "params"))
    if owner is None or "**" in made.keywords or not (is_default or given):
        return None
    if _PARTS_ARE_FROZEN.search(_surroundings(file, made.node)):
        return None
    amount = _amount(file, given[0], decay) if decay is not None else None
    if amount is not None and amount <= _NEGLIGIBLE:
        return None
    is_sgd = made.dotted == "torch.optim.SGD"
    answers = [_held(model, batch_norm_counts=not is_sgd) for model in _originals(owner)]
    held = answers[0][1] if all(name is not None for _, name in answers) else None
    is_invisible = all(name is not None or not visible for visible, name in answers)
    is_decoupled = made.dotted.rpartition(".")[2] in training.DECOUPLED_DECAY
    if held is None and not (is_invisible and is_decoupled):
        return None
    return DecayOfAll(made, held, is_default, is_default or amount is not None)


def _surroundings(file: FileModel, node: ast.Call) -> str:
    """The text of the function that a call stands in, or of the code outside functions."""
    function = file.index.enclosing_function(node)
    if function is not None:
        return file.segment(function)
    outside = (item for item in file.tree.body if not isinstance(item, _DEFINITIONS))
    return "".join(map(file.segment, outside))


def _originals(model: Value) -> Iterator[Value]:
    """Each model that this one may be, or be a copy of."""
    for option in options(model):
        inner = unwrapped(option)
        if isinstance(inner, Object) and inner.copy_of is not None:
            yield from _originals(inner.copy_of)
        elif inner is not option:
            yield from _originals(inner)
        else:
            yield inner


def _has_default_decay(dotted: str) -> bool:
    return dotted == "torch.optim.AdamW" or dotted.startswith("bitsandbytes.optim.AdamW")


def _whole_model(params: Value | None) -> Value | None:
    """The model all of whose parameters are given; None for a part, a group or a selection."""
    found = list(options(params))
    if len(found) != 1 or not isinstance(found[0], Parameters):
        return None
    node = found[0].node
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return None
    if node.func.attr != "parameters":
        return None
    owner = owner_of_parameters(found[0])
    parent = owner.parent if isinstance(owner, Unknown) else None
    is_part = parent is not None and parent.hint != "self" and has_role(parent, Role.MODULE)
    return None if is_part else owner


def _amount(file: FileModel, given: ast.expr, decay: Value) -> float | None:
    """The decay as a number; an option of the command line counts with its default."""
    found = list(options(decay))
    numbers = [item.value for item in found if isinstance(item, Constant)]
    if any(not number for number in numbers):
        return 0.0
    if len(numbers) == len(found) and isinstance(numbers[0], (int, float)):
        return float(numbers[0])
    if not isinstance(given, ast.Attribute):
        return None
    for call in file.nodes(ast.Call):
        if _is_option(call, given.attr):
            default = next((item.value for item in call.keywords if item.arg == "default"), None)
            if isinstance(default, ast.Constant) and isinstance(default.value, (int, float)):
                return float(default.value)
            return None
    return None


def _is_option(call: ast.Call, name: str) -> bool:
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"):
        return False
    names = [item.value for item in call.args if isinstance(item, ast.Constant)]
    names += [
        item.value.value
        for item in call.keywords
        if item.arg == "dest" and isinstance(item.value, ast.Constant)
    ]
    return any(
        isinstance(item, str) and item.lstrip("-").replace("-", "_") == name for item in names
    )


def _held(model: Value, *, batch_norm_counts: bool) -> tuple[bool, str | None]:
    """Whether the model's inside is visible, and a layer of it that should not be decayed."""
    visible = True
    for layer in layers(model):
        name = _undecayed(layer)
        if name is not None and (batch_norm_counts or name not in _BATCH_NORMS):
            return True, name
        if isinstance(layer, Instance):
            visible = (
                visible and layer.definition.is_module and not layer.definition.has_unknown_base()
            )
        else:
            visible = visible and isinstance(layer, Object) and layer.dotted.startswith("torch.nn.")
    return visible, None


def _undecayed(layer: Value) -> str | None:
    if isinstance(layer, Instance):
        name = layer.definition.name
        return name if name.endswith(("LayerNorm", "RMSNorm", "GroupNorm")) else None
    if not isinstance(layer, Object) or not layer.dotted.startswith("torch.nn."):
        return None
    name = layer.dotted.removeprefix("torch.nn.")
    if name.startswith("InstanceNorm"):
        affine = layer.keywords.get("affine")
        return name if isinstance(affine, Constant) and affine.value else None
    switches = [layer.keywords.get(key) for key in ("affine", "elementwise_affine")]
    if any(isinstance(item, Constant) and not item.value for item in switches):
        return None
    is_kept = name in modules.NORMALISING | modules.EMBEDDINGS | modules.DECAYED_INSIDE
    return name if is_kept else None
