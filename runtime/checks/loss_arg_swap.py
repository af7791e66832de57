"""The loss is called as (target, prediction).

The target carries the graph and the input does not. For symmetric losses this changes nothing, so
only asymmetric ones count.

Fix: prediction first, target second.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._losses import NO_LOSS, first_wrong, training_losses
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import LossCall

RULE = "loss-arg-swap"


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL where only the second argument carries a graph."""
    calls = training_losses(
        evidence,
        "cross_entropy",
        "nll_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "kl_div",
    )
    if not calls:
        yield NotChecked(RULE, NO_LOSS)
        return
    first = first_wrong(calls, _wrong)
    if first is not None:
        yield Finding(
            RULE,
            Level.FAIL,
            "prediction and target are swapped",
            f"the target of {first.function} carries the graph and the input does not",
            "pass the prediction first and the target second",
            first.place,
        )


def _wrong(call: LossCall) -> bool:
    return call.target is not None and call.target.requires_grad and not call.input.requires_grad
