"""Loss functions and loss modules: what they expect as input and as target."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LossKind:
    """One loss under all its names.

    ``expects``: what the input must be (``logits``, ``log-probabilities``, ``probabilities``,
    ``values``). ``symmetric``: swapping input and target gives the same number.
    ``target_position``: which positional argument is the target.
    """

    name: str
    expects: str
    symmetric: bool = False
    input_name: str = "input"
    target_name: str = "target"
    target_position: int = 1


CROSS_ENTROPY = LossKind("cross_entropy", "logits")
NLL = LossKind("nll_loss", "log-probabilities")
BCE = LossKind("binary_cross_entropy", "probabilities")
BCE_WITH_LOGITS = LossKind("binary_cross_entropy_with_logits", "logits")
KL_DIV = LossKind("kl_div", "log-probabilities")
MSE = LossKind("mse_loss", "values", symmetric=True)
L1 = LossKind("l1_loss", "values", symmetric=True)
SMOOTH_L1 = LossKind("smooth_l1_loss", "values", symmetric=True)
HUBER = LossKind("huber_loss", "values", symmetric=True)
POISSON_NLL = LossKind("poisson_nll_loss", "values")
GAUSSIAN_NLL = LossKind("gaussian_nll_loss", "values")
SOFT_MARGIN = LossKind("soft_margin_loss", "logits")
MULTILABEL_SOFT_MARGIN = LossKind("multilabel_soft_margin_loss", "logits")
MULTILABEL_MARGIN = LossKind("multilabel_margin_loss", "values")
MULTI_MARGIN = LossKind("multi_margin_loss", "values")
HINGE_EMBEDDING = LossKind("hinge_embedding_loss", "values")
COSINE_EMBEDDING = LossKind(
    "cosine_embedding_loss", "values", input_name="input1", target_position=2
)
FOCAL = LossKind("sigmoid_focal_loss", "logits", input_name="inputs", target_name="targets")

_CLASSES = {
    "CrossEntropyLoss": CROSS_ENTROPY,
    "NLLLoss": NLL,
    "NLLLoss2d": NLL,
    "BCELoss": BCE,
    "BCEWithLogitsLoss": BCE_WITH_LOGITS,
    "KLDivLoss": KL_DIV,
    "MSELoss": MSE,
    "L1Loss": L1,
    "SmoothL1Loss": SMOOTH_L1,
    "HuberLoss": HUBER,
    "PoissonNLLLoss": POISSON_NLL,
    "GaussianNLLLoss": GAUSSIAN_NLL,
    "SoftMarginLoss": SOFT_MARGIN,
    "MultiLabelSoftMarginLoss": MULTILABEL_SOFT_MARGIN,
    "MultiLabelMarginLoss": MULTILABEL_MARGIN,
    "MultiMarginLoss": MULTI_MARGIN,
    "HingeEmbeddingLoss": HINGE_EMBEDDING,
    "CosineEmbeddingLoss": COSINE_EMBEDDING,
}
_KINDS = {kind.name: kind for kind in _CLASSES.values()}

LOSS_MODULES = {f"torch.nn.{name}": kind for name, kind in _CLASSES.items()}
LOSS_FUNCTIONS = {f"torch.nn.functional.{name}": kind for name, kind in _KINDS.items()}
LOSS_FUNCTIONS |= {
    "torch.nll_loss": NLL,
    "torch.kl_div": KL_DIV,
    "torch.poisson_nll_loss": POISSON_NLL,
    "torch.binary_cross_entropy_with_logits": BCE_WITH_LOGITS,
    "torch.hinge_embedding_loss": HINGE_EMBEDDING,
    "torch.cosine_embedding_loss": COSINE_EMBEDDING,
    "torchvision.ops.sigmoid_focal_loss": FOCAL,
    "torchvision.ops.focal_loss.sigmoid_focal_loss": FOCAL,
}

LOSS_PARTS = (
    "loss", "Loss", "LOSS", "crit", "Crit", "ntropy", "bjective", "nll", "NLL", "kl_div", "kldiv",
    "klDiv", "KLDiv", "kld", "KLD", "bce", "BCE", "mse", "MSE",
)  # fmt: skip
"""What the names that people give to losses hold."""
LOSS_NAMES = ("ce", "CE", "Ce", "cE", "l1", "L1")
"""Names that are given to losses and are parts of too many others."""

LOSS_CALL_TEXT = rf"(?:{'|'.join(LOSS_PARTS)})[\w\[\]()'\"]*\(|(?:\b[cC][eE]|\b[lL]1)\("
"""How a call of a loss looks in the source."""
