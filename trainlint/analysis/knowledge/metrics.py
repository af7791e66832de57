"""Metrics by name: which are better when higher, and which when lower."""

from __future__ import annotations

import re

_HIGHER = frozenset(
    {
        "acc", "accs", "accuracy", "accuracies", "f1", "iou", "miou", "auc", "auroc", "dice", "map",
        "precision", "recall", "psnr", "ssim", "bleu", "reward", "rewards", "top1", "acc1", "mrr",
        "ndcg", "correct", "rouge", "cider",
    }
)  # fmt: skip
_LOWER = frozenset(
    {
        "loss", "losses", "err", "error", "errors", "wer", "cer", "rmse", "mse", "mae", "ppl",
        "nll", "perplexity", "fid", "cost", "bpd", "bpc",
    }
)  # fmt: skip
METRIC_WORDS = _HIGHER | _LOWER
"""The words by which a name is known to be a metric's; any word that ends in "loss" is one too."""
_WORD = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*")


def better_when(name: str) -> str | None:
    """``higher`` or ``lower``, where the name of a metric says so; None where not, or both."""
    words = {word.lower() for word in [*_WORD.findall(name), *re.split(r"[\W_]+", name)]}
    words |= {word.rstrip("0123456789") for word in words}
    is_higher = bool(words & _HIGHER)
    is_lower = bool(words & _LOWER) or any(word.endswith("loss") for word in words)
    if is_higher is is_lower:
        return None
    return "higher" if is_higher else "lower"
