"""What part a value plays in training, and whether that is known or only guessed by its name."""

from __future__ import annotations

import enum
import re
from functools import lru_cache

from trainlint.analysis.definitions import ClassDefinition
from trainlint.analysis.knowledge import losses, modules, training
from trainlint.analysis.values import (
    Choice,
    External,
    Instance,
    Object,
    Parameters,
    Tensor,
    Unknown,
    Value,
)


class Role(enum.Enum):
    """The parts that rules ask about."""

    MODULE = "module"
    LOSS_FUNCTION = "loss function"
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    SCALER = "scaler"
    LOADER = "loader"
    SAMPLER = "sampler"
    ACCELERATOR = "accelerator"
    TENSOR = "tensor"
    OTHER = "other"


_MODEL_LIBRARIES = (
    "torchvision.models.",
    "timm.",
    "transformers.",
    "segmentation_models_pytorch.",
    "torch_geometric.nn.",
    "efficientnet_pytorch.",
    "pretrainedmodels.",
    "monai.networks.",
    "torch.hub.load",
    "smp.",
    "open_clip.",
    "sentence_transformers.",
    "torchaudio.models.",
    "diffusers.",
    "peft.",
    "clip.load",
    "x_transformers.",
)
_NOT_NETWORKS = re.compile(
    r"Tokenizer|Processor|Extractor|Config|Collator|Trainer|Arguments|Callback|Dataset|Criteria|Streamer"
)
_ANNOTATIONS = {
    "torch.nn.Module": Role.MODULE,
    "torch.optim.Optimizer": Role.OPTIMIZER,
    "torch.utils.data.DataLoader": Role.LOADER,
    "torch.Tensor": Role.TENSOR,
    "accelerate.Accelerator": Role.ACCELERATOR,
}


def role(value: Value | None) -> tuple[Role, bool]:
    """The value's part, and True where it is known rather than guessed."""
    if isinstance(value, Choice):
        found = [role(option) for option in value.options]
        first = found[0][0] if found else Role.OTHER
        known = [item for item in found if item[0] is not Role.OTHER]
        if known and all(item[0] is known[0][0] for item in known):
            return known[0][0], all(item[1] for item in known)
        return first, False
    if isinstance(value, Tensor):
        return Role.TENSOR, True
    if isinstance(value, Object):
        return _of_library_object(value)
    if isinstance(value, Instance):
        return _of_instance(value)
    if isinstance(value, Unknown):
        return _of_unknown(value)
    return Role.OTHER, True


def has_role(value: Value | None, wanted: Role) -> bool:
    """Whether the value plays this part, known or guessed."""
    return role(value)[0] is wanted


@lru_cache(maxsize=10_000)
def by_name(name: str) -> Role:
    """The part that a name suggests."""
    checks = (
        (training.looks_like_scheduler, Role.SCHEDULER),
        (training.looks_like_optimizer, Role.OPTIMIZER),
        (training.looks_like_scaler, Role.SCALER),
        (training.looks_like_loader, Role.LOADER),
        (training.looks_like_loss_function, Role.LOSS_FUNCTION),
        (training.looks_like_module, Role.MODULE),
        (lambda text: text.lower() in {"accelerator", "accel", "fabric"}, Role.ACCELERATOR),
        (lambda text: "sampler" in text.lower(), Role.SAMPLER),
    )
    for suggests, found in checks:
        if suggests(name):
            return found
    return Role.OTHER


def unseen_result(callee: str) -> Unknown:
    """What a function or method of this name returns, where nobody looks inside.

    Its name stands for the result where it says a part, as ``build_optimizer`` does; what
    ``get_model`` returns is named by the variable that takes it.
    """
    return Unknown(hint=callee if by_name(callee) is not Role.OTHER else "")


def of_library_class(dotted: str) -> Role | None:
    """The part that objects of a known library's class, or results of its function, play."""
    if dotted in losses.LOSS_MODULES:
        return Role.LOSS_FUNCTION
    if dotted in modules.WRAPPERS or modules.is_torch_module(dotted):
        return Role.LOSS_FUNCTION if dotted.endswith("Loss") else Role.MODULE
    if training.is_optimizer_class(dotted):
        return Role.OPTIMIZER
    if dotted in training.SCALER_CLASSES:
        return Role.SCALER
    if training.is_scheduler_class(dotted):
        return Role.SCHEDULER
    if dotted in training.LOADER_CLASSES:
        return Role.LOADER
    if dotted.startswith("torch.utils.data.") and dotted.endswith("Sampler"):
        return Role.SAMPLER
    if dotted.endswith((".Accelerator", "lightning.Fabric", ".Fabric")):
        return Role.ACCELERATOR
    return None


def _of_library_object(value: Object) -> tuple[Role, bool]:
    dotted = value.dotted
    known = of_library_class(dotted)
    if known is not None:
        return known, True
    if value.copy_of is not None:
        return role(value.copy_of)
    if dotted.startswith(_MODEL_LIBRARIES) and not _NOT_NETWORKS.search(dotted):
        guess = by_name(value.hint)
        return (
            (Role.MODULE, guess is Role.MODULE)
            if guess in (Role.MODULE, Role.OTHER)
            else (guess, False)
        )
    guess = by_name(value.hint)
    if value.has_parameters and guess is Role.OTHER:
        return Role.MODULE, True
    return guess, False


def of_class(definition: ClassDefinition) -> Role | None:
    """The part that objects of a class of the project certainly play, judged by its bases."""
    if definition.is_module:
        is_loss = definition.name.endswith(("Loss", "Criterion"))
        return Role.LOSS_FUNCTION if is_loss else Role.MODULE
    return _by_bases(definition)


def _of_instance(value: Instance) -> tuple[Role, bool]:
    definition = value.definition
    known = of_class(definition)
    if known is not None:
        return known, True
    guess = by_name(value.hint) if definition.has_unknown_base() else by_name(definition.name)
    return (guess, False) if guess in (Role.OPTIMIZER, Role.SCHEDULER) else (Role.OTHER, False)


def _by_bases(definition: ClassDefinition) -> Role | None:
    for name in definition.external_bases():
        if name is None:
            continue
        if name == "torch.optim.Optimizer" or training.is_optimizer_class(name):
            return Role.OPTIMIZER
        if training.is_scheduler_class(name):
            return Role.SCHEDULER
        if name in training.LOADER_CLASSES:
            return Role.LOADER
        if name.startswith("torch.utils.data.") and name.endswith("Sampler"):
            return Role.SAMPLER
    return None


def of_annotation(dotted: str | None) -> Role | None:
    """The part that a parameter declared with a library's class plays."""
    if dotted is None:
        return None
    known = _ANNOTATIONS.get(dotted)
    if known is not None:
        return known
    if training.is_scheduler_class(dotted):
        return Role.SCHEDULER
    return Role.OPTIMIZER if training.is_optimizer_class(dotted) else None


def _of_unknown(value: Unknown) -> tuple[Role, bool]:
    known = of_annotation(value.annotation)
    return (known, True) if known is not None else (by_name(value.hint), False)


def loss_kind(function: Value | None) -> losses.LossKind | None:
    """Which of torch's losses a function or loss module is; None for anything else."""
    inner = unwrapped(function) if function is not None else None
    if isinstance(inner, Object):
        return losses.LOSS_MODULES.get(inner.dotted)
    return losses.LOSS_FUNCTIONS.get(inner.dotted) if isinstance(inner, External) else None


def unwrapped(value: Value) -> Value:
    """The module inside DDP, FSDP, ``torch.compile`` and the like; else the value itself."""
    current = value
    for _ in range(6):
        is_wrapper = isinstance(current, Object) and current.dotted in modules.WRAPPERS
        if not (is_wrapper and isinstance(current, Object) and current.arguments):
            break
        current = current.arguments[0]
    return current


def owner_of_parameters(value: Value) -> Value:
    """The module that parameters, or a list of them, belong to; else the value itself."""
    current = value
    while isinstance(current, Parameters):
        current = current.owner
    return unwrapped(current)
