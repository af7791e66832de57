"""The output layer ends in a ReLU before a classification loss.

Negative logits are impossible, and units that are dead at the start stay dead.

Fix: drop the activation of the output layer.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._losses import NO_LOSS, first_wrong, training_losses
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import LossCall

RULE = "relu-before-loss"


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN where a ReLU made the logits."""
    calls = training_losses(evidence, "cross_entropy", "binary_cross_entropy_with_logits")
    if not calls:
        yield NotChecked(RULE, NO_LOSS)
        return
    first = first_wrong(calls, _wrong)
    if first is not None:
        yield Finding(
            RULE,
            Level.WARN,
            "the logits come out of a ReLU",
            f"{first.function} was given the output of a ReLU",
            "remove the ReLU after the last layer",
            first.place,
        )


def _wrong(call: LossCall) -> bool:
    return call.input_made_by in ("Relu", "Threshold")
