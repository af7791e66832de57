"""``cross_entropy`` is given log-probabilities.

Harmless, because log-softmax of log-softmax changes nothing, but wasted work.

Fix: use ``nll_loss``, or drop the log_softmax.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._losses import NO_LOSS, first_wrong, training_losses
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import LossCall

RULE = "log-softmax-before-cross-entropy"


def check(evidence: Evidence) -> Iterator[Result]:
    """NOTE where log_softmax made the input."""
    calls = training_losses(evidence, "cross_entropy")
    if not calls:
        yield NotChecked(RULE, NO_LOSS)
        return
    first = first_wrong(calls, _wrong)
    if first is not None:
        yield Finding(
            RULE,
            Level.NOTE,
            "log_softmax is applied before cross_entropy",
            "cross_entropy was given the output of log_softmax",
            "use nll_loss, or pass the logits",
            first.place,
        )


def _wrong(call: LossCall) -> bool:
    return call.input_made_by == "LogSoftmax"
