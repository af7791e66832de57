"""``kl_div`` expects its input as log-probabilities.

Two probability tensors give a plausible, often negative number.

Fix: pass ``log_softmax`` output as input and probabilities as target.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._losses import NO_LOSS, first_wrong, span, training_losses
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import LossCall

RULE = "kl-div-input-not-log"
# Rounding of a log-probability near zero.
POSITIVE = 1e-3


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for an input with positive values."""
    calls = training_losses(evidence, "kl_div")
    if not calls:
        yield NotChecked(RULE, NO_LOSS)
        return
    first = first_wrong(calls, _wrong)
    if first is not None:
        yield Finding(
            RULE,
            Level.FAIL,
            "kl_div is given an input that is not in log space",
            f"inputs lie in {span(first.input)}; log-probabilities are never positive",
            "pass log_softmax(...) as input and probabilities as target",
            first.place,
        )


def _wrong(call: LossCall) -> bool:
    high = call.input.high
    return call.input_made_by == "Softmax" or (high is not None and high > POSITIVE)
