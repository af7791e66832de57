"""``nll_loss`` is given something else than log-probabilities.

Log-probabilities are never positive, and their exponentials sum to one. With probabilities the loss
is negative, with logits it is unbounded.

Fix: use ``cross_entropy`` on logits, or apply ``log_softmax``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._losses import NO_LOSS, first_wrong, span, training_losses
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import LossCall

RULE = "nll-without-log"
# Rounding of a log-probability near zero, and of a sum over many classes in half precision.
POSITIVE = 1e-3
UNNORMALISED = 0.05


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for positive or unnormalised inputs."""
    calls = training_losses(evidence, "nll_loss")
    if not calls:
        yield NotChecked(RULE, NO_LOSS)
        return
    first = first_wrong(calls, _wrong)
    if first is not None:
        yield Finding(
            RULE,
            Level.FAIL,
            "nll_loss is given values that are not log-probabilities",
            f"inputs lie in {span(first.input)}; log of the sum of exponentials is off by "
            f"{first.input.row_exp_sum_error or 0.0:.3g}",
            "apply log_softmax first, or use cross_entropy on the logits",
            first.place,
        )


def _wrong(call: LossCall) -> bool:
    high, error = call.input.high, call.input.row_exp_sum_error
    return high is not None and (high > POSITIVE or (error or 0.0) > UNNORMALISED)
