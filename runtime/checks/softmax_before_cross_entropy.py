"""``cross_entropy`` is given probabilities; it applies log-softmax itself.

The loss cannot come near zero and gradients are tiny. Seen from the values (rows in [0, 1] that sum
to one) or from the softmax that made them.

Fix: pass the logits.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._losses import (
    NO_LOSS,
    first_wrong,
    is_probability,
    span,
    training_losses,
)
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import LossCall

RULE = "softmax-before-cross-entropy"


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for softmax output, by value or by origin."""
    calls = training_losses(evidence, "cross_entropy")
    if not calls:
        yield NotChecked(RULE, NO_LOSS)
        return
    first = first_wrong(calls, _wrong)
    if first is not None:
        yield Finding(
            RULE,
            Level.FAIL,
            "softmax is applied before cross_entropy",
            f"inputs lie in {span(first.input)} and each row sums to one",
            "pass the logits; cross_entropy applies log_softmax itself",
            first.place,
        )


def _wrong(call: LossCall) -> bool:
    return (call.classes or 0) > 1 and (is_probability(call) or call.input_made_by == "Softmax")
