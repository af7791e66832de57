"""The negative of a loss is minimised.

The node behind backward negates a cross entropy or regression loss, and the value is negative.
Adversarial training does so on purpose, so this is a warning.

Fix: drop the sign.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "loss-sign-wrong"

# Losses that are never negative; minimising their negative drives the model away from the data.
_LOSSES = ("NllLoss", "BinaryCrossEntropy", "MseLoss", "L1Loss", "SmoothL1", "Huber")
BACKWARDS = 2


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN for a graph that ends in the negation of such a loss."""
    looked = [b for b in evidence.trace.backwards if b.graph]
    if not looked:
        yield NotChecked(RULE, "no backward of a loss with a graph was seen")
        return
    wrong = [
        b
        for b in looked
        if len(b.graph) > 1
        and b.graph[0].startswith("Neg")
        and b.graph[1].startswith(_LOSSES)
        and (b.value or 0) < 0
    ]
    if len(wrong) >= BACKWARDS and len(wrong) == len(looked):
        yield Finding(
            RULE,
            Level.WARN,
            "the negative of a loss is minimised",
            f"backward starts at the negation of {wrong[0].graph[1]}, value {wrong[0].value:.4g}",
            "drop the minus sign, unless the model is meant to get worse at this",
            wrong[0].place,
        )
