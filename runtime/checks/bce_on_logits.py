"""``binary_cross_entropy`` is given values outside [0, 1].

torch refuses on the CPU and corrupts the context on a GPU.

Fix: use ``binary_cross_entropy_with_logits``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._losses import NO_LOSS, first_wrong, span, training_losses
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import LossCall

RULE = "bce-on-logits"


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for values that are no probabilities."""
    calls = training_losses(evidence, "binary_cross_entropy")
    if not calls:
        yield NotChecked(RULE, NO_LOSS)
        return
    first = first_wrong(calls, _wrong)
    if first is not None:
        yield Finding(
            RULE,
            Level.FAIL,
            "binary_cross_entropy is given logits",
            f"inputs lie in {span(first.input)}",
            "use binary_cross_entropy_with_logits",
            first.place,
        )


def _wrong(call: LossCall) -> bool:
    facts = call.input
    return facts.low is not None and facts.high is not None and (facts.low < 0 or facts.high > 1)
