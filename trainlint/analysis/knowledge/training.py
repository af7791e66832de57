"""Optimizers, schedulers, scalers, loaders and samplers by class name, and by habit of naming."""

from __future__ import annotations

import re
from functools import lru_cache

OPTIMIZER_CLASSES = frozenset(
    {
        "SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "RMSpropTF", "Adagrad",
        "Adadelta", "Rprop", "ASGD", "LBFGS", "SparseAdam", "Adafactor", "Muon", "Lamb", "LAMB",
        "Lars", "LARS", "Lion", "Ranger", "Ranger21", "NovoGrad", "AdaBelief", "AdaBound", "AdamP",
        "SGDP", "SGDW", "Lookahead", "FusedAdam", "FusedLAMB", "FusedSGD", "Adam8bit", "AdamW8bit",
        "PagedAdamW8bit", "PagedAdamW", "PagedAdamW32bit", "DeepSpeedCPUAdam", "Prodigy", "Sophia",
        "SophiaG", "Shampoo", "MADGRAD", "BertAdam", "OpenAIAdam", "AdamMini", "SOAP", "Yogi",
        "NoamOpt", "HybridAdam", "ScheduledOptim",
    }
)  # fmt: skip
DECOUPLED_DECAY = frozenset(
    {"AdamW", "AdamW8bit", "PagedAdamW", "PagedAdamW8bit", "PagedAdamW32bit"}
)
OPTIMIZER_METHODS = frozenset(
    {
        "step", "zero_grad", "state_dict", "load_state_dict", "add_param_group", "items", "values",
        "keys", "train", "eval", "first_step", "second_step", "restore_step", "share_memory",
        "register_step_pre_hook", "register_step_post_hook", "synchronize", "skip_synchronize",
        "swap_swa_sgd", "update_swa", "bn_update", "unscale", "unscale_", "clip_grad_norm",
        "clip_grad_norm_", "clip_gradients", "consolidate_state_dict", "optimizer", "lr",
        "get_lr", "set_lr", "backward",
    }
)  # fmt: skip
"""What torch's optimizers, and those that wrap or follow them closely, can be asked for."""
GROUP_SETTINGS = frozenset(
    {"lr", "initial_lr", "lr_scale", "weight_decay", "momentum", "betas", "eps", "name"}
)
"""What a parameter group holds beside its parameters."""

SCALER_CLASSES = frozenset(
    {
        "torch.cuda.amp.GradScaler",
        "torch.amp.GradScaler",
        "torch.cuda.amp.grad_scaler.GradScaler",
        "torch.amp.grad_scaler.GradScaler",
        "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",
    }
)
GRAPH_LOADER_CLASSES = frozenset(
    {
        "torch_geometric.loader.HGTLoader",
        "torch_geometric.loader.LinkNeighborLoader",
        "torch_geometric.loader.NeighborLoader",
    }
)
LOADER_CLASSES = GRAPH_LOADER_CLASSES | {
    "torch.utils.data.DataLoader",
    "torch_geometric.loader.DataLoader",
    "torch_geometric.data.DataLoader",
    "torchdata.stateful_dataloader.StatefulDataLoader",
    "monai.data.DataLoader",
    "webdataset.WebLoader",
}
DISTRIBUTED_SAMPLERS = frozenset({"torch.utils.data.DistributedSampler"})

_OPTIMIZER_NAME = re.compile(r"optim|(^|_)opts?(_|\d|$)|^opt[A-Z]", re.IGNORECASE)
_SCHEDULER_NAME = re.compile(r"sched|(^|_)warm_?up|lr_?(decay|policy)", re.IGNORECASE)
_SCALER_NAME = re.compile(r"scaler$", re.IGNORECASE)
_MODULE_NAME = re.compile(
    r"(model|network|module|encoder|decoder|generator|discriminator|backbone|classifier|critic|"
    r"actor|policy|student|teacher|unet|transformer|vae|ddpm|policy|agent)s?$"
    r"|^(model|net)(_|\d|$|[A-Z])|(^|_|[a-z])[nN]et(_?[A-Z]|\d|_[a-z]|s)?$|^net[A-Z_]|^(gpt|bert|llm)$"
    r"|^(G|D|E|F)(_[A-Z]+)?$|^self$",
)
_MAKES_MODULE = re.compile(
    r"^(make|build|create|get|load|construct|define|setup|instantiate)(_|[A-Z])|_(fn|factory)$"
)
_CONSTRUCTOR_NAME = re.compile(
    r"^_*(make|build|create|construct|instantiate)(_|[A-Z])|_(cls|class|type|builder|factory)$"
)
_LOADER_NAME = re.compile(
    r"loader|(^|_)(train|val|valid|validation|test|dev|eval)_?(iter|dl|data|batches|dataset|set)"
    r"(ator)?$|(^|_)dl$|^(data_?iter|batches|dataloaders?)$",
    re.IGNORECASE,
)
_LOSS_NAME = re.compile(
    r"criteri|^crit(_|$)|loss_?(fn|fun|func|function|f|module|layer)s?$|^objective$|"
    r"^(bce|ce|mse|l1|nll|kl|cross_entropy|adversarial|gan|pixelwise|auxiliary|recon)\w*_loss(es)?$|"
    r"^self_loss$",
    re.IGNORECASE,
)
_AVERAGE_NAME = re.compile(r"(^|_)(ema|swa)(_|$)|(^|_)averaged?_(model|net)", re.IGNORECASE)
_TRAIN_WORD = re.compile(r"(^|[_\W])(train|training|trn|tr)([_\W\d]|$)|train", re.IGNORECASE)
_EVALUATION_WORD = re.compile(
    r"(^|[_\W\d])(val|vali|valid|validation|test|testing|tst|eval|evaluation|evaluate|dev|holdout|"
    r"infer|inference|predict)([_\W\d]|$)|(val|valid|validation|test|eval)_?(loader|dl|iter|set|data)|"
    r"^(val(?!u)|valid|test|eval)",
    re.IGNORECASE,
)
_UPDATE_WORD = re.compile(
    r"step|train(?!ing_?mode)|fit|update|optim|backward|learn|zero|minimi|apply|adapt|run|tune|grad",
    re.IGNORECASE,
)
_NO_LOSS_RESULT = re.compile(
    r"weight|coef|scal|param|(^|_)(fn|func|function|log_?var|lambda|alpha|beta|ratio|factor|module|"
    r"layer|type|name|mask|grad|key|config|cfg|criterion)s?(_|$)",
    re.IGNORECASE,
)


def is_optimizer_class(dotted: str) -> bool:
    """Whether a library's class is an optimizer."""
    head, _, last = dotted.rpartition(".")
    if head == "torch.optim":
        return last[:1].isupper()
    return last in OPTIMIZER_CLASSES and not head.startswith(
        ("tensorflow", "keras", "optax", "paddle", "mindspore")
    )


def is_scheduler_class(dotted: str) -> bool:
    """Whether a library's class or factory makes learning-rate schedulers."""
    last = dotted.rpartition(".")[2]
    if dotted.startswith("torch.optim.lr_scheduler."):
        return True
    return bool(
        re.search(
            r"^get_\w*schedule|Scheduler$|ScheduleWithWarmup|^create_scheduler|LR$|WarmRestarts$",
            last,
        )
    )


def looks_like_optimizer(name: str) -> bool:
    """Whether people would name an optimizer so."""
    return bool(_OPTIMIZER_NAME.search(name)) and not looks_like_scheduler(name)


def looks_like_scheduler(name: str) -> bool:
    """Whether people would name a learning-rate scheduler so."""
    return bool(_SCHEDULER_NAME.search(name))


def looks_like_scaler(name: str) -> bool:
    """Whether people would name a GradScaler so."""
    return bool(_SCALER_NAME.search(name))


def looks_like_module(name: str) -> bool:
    """Whether people would name a network so."""
    is_other = looks_like_loader(name) or _MAKES_MODULE.search(name)
    return bool(_MODULE_NAME.search(name)) and not is_other


def looks_like_constructor(name: str) -> bool:
    """Whether people would name so what they call to make an object: a class or a function."""
    return bool(_CONSTRUCTOR_NAME.search(name))


def looks_like_average(name: str) -> bool:
    """Whether people would name a running average of a network's weights so."""
    return bool(_AVERAGE_NAME.search(name))


def looks_like_loader(name: str) -> bool:
    """Whether people would name a data loader so."""
    return bool(_LOADER_NAME.search(name))


def looks_like_loss_function(name: str) -> bool:
    """Whether people would name a loss function or loss module so."""
    return bool(_LOSS_NAME.search(name))


def speaks_of_training(name: str) -> bool:
    """Whether a name has a word for training in it, whatever else it says."""
    return bool(_TRAIN_WORD.search(name))


def speaks_of_update(name: str) -> bool:
    """Whether a method of this name may compute gradients or move weights."""
    return bool(_UPDATE_WORD.search(name))


@lru_cache(maxsize=10_000)
def sounds_like_training(name: str) -> bool:
    """Whether a name speaks of training data, a training step or a training phase."""
    return bool(_TRAIN_WORD.search(name)) and not sounds_like_evaluation(name)


@lru_cache(maxsize=10_000)
def sounds_like_evaluation(name: str) -> bool:
    """Whether a name speaks of validation, test, evaluation or inference."""
    return bool(_EVALUATION_WORD.search(name))


def looks_like_loss_result(name: str) -> bool:
    """Whether people would name so what a loss function returned, and not what belongs to it."""
    return bool(re.search(r"loss|(^|_)cost($|_)", name, re.IGNORECASE)) and not (
        _NO_LOSS_RESULT.search(name) or (looks_like_loss_function(name) and "_loss" not in name)
    )
