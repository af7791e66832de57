"""``cross_entropy`` is given class probabilities as target that do not sum to one.

Fix: normalise the targets.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._losses import NO_LOSS, first_wrong, span, training_losses
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import LossCall

RULE = "soft-targets-do-not-sum-to-one"
# More than rounding in half precision.
ROW_SUM_ERROR = 0.02


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN for rows of soft targets that are off."""
    calls = training_losses(evidence, "cross_entropy")
    if not calls:
        yield NotChecked(RULE, NO_LOSS)
        return
    first = first_wrong(calls, _wrong)
    if first is not None:
        yield Finding(
            RULE,
            Level.WARN,
            "soft targets do not sum to one",
            f"target values in {span(first.target)}; off by over {ROW_SUM_ERROR:g}",
            "normalise the target rows",
            first.place,
        )


def _wrong(call: LossCall) -> bool:
    error = call.target.row_sum_error if call.target is not None else None
    return error is not None and error > ROW_SUM_ERROR
