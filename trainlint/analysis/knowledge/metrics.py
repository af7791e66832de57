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
_WORD = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*")


def better_when(name: str) -> str | None:
    """``higher`` or ``lower``, where the name of a metric says so; None where not, or both."""
    words = {word.lower() for word in [*_WORD.findall(name), *re.split(r"[\W_]+", name)]}
    if words & _HIGHER and not words & _LOWER:
        return "higher"
    return "lower" if words & _LOWER and not words & _HIGHER else None
