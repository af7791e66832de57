"""``binary_cross_entropy_with_logits`` is given the output of a sigmoid.

Squeezed into (0, 1), predictions never fall below one half. Only the sigmoid in the graph counts:
logits that happen to lie in (0, 1) are common at the start.

Fix: pass the logits.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._losses import NO_LOSS, first_wrong, span, training_losses
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import LossCall

RULE = "sigmoid-before-bce-logits"


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL where a sigmoid made the input."""
    calls = training_losses(evidence, "binary_cross_entropy_with_logits")
    if not calls:
        yield NotChecked(RULE, NO_LOSS)
        return
    first = first_wrong(calls, _wrong)
    if first is not None:
        yield Finding(
            RULE,
            Level.FAIL,
            "sigmoid is applied before binary_cross_entropy_with_logits",
            f"inputs come from {first.input_made_by} and lie in {span(first.input)}",
            "pass the logits; this loss applies the sigmoid itself",
            first.place,
        )


def _wrong(call: LossCall) -> bool:
    return call.input_made_by in ("Sigmoid", "Softmax")
