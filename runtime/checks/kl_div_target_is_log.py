"""``kl_div`` is given a target in log space without ``log_target=True``.

Fix: pass probabilities, or set ``log_target=True``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._losses import NO_LOSS, first_wrong, span, training_losses
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import LossCall

RULE = "kl-div-target-is-log"


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for a target with negative values."""
    calls = training_losses(evidence, "kl_div")
    if not calls:
        yield NotChecked(RULE, NO_LOSS)
        return
    first = first_wrong(calls, _wrong)
    if first is not None:
        yield Finding(
            RULE,
            Level.FAIL,
            "kl_div is given a target in log space",
            f"targets lie in {span(first.target)}; probabilities are never negative",
            "pass probabilities as target, or log_target=True",
            first.place,
        )


def _wrong(call: LossCall) -> bool:
    low = call.target.low if call.target is not None else None
    return low is not None and low < 0 and not call.options.get("log_target")
