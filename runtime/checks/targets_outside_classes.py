"""Targets that are no class index, or of which nearly all are ignored.

Fix: check label encoding, padding and ``ignore_index``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._losses import NO_LOSS, first_wrong, span, training_losses
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import LossCall

RULE = "targets-outside-classes"
# Masked language models ignore 85 % by design.
NEARLY_ALL = 0.98


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for impossible targets; all of them ignored counts."""
    calls = training_losses(evidence, "cross_entropy", "nll_loss")
    if not calls:
        yield NotChecked(RULE, NO_LOSS)
        return
    first = first_wrong(calls, _wrong)
    if first is not None:
        yield Finding(
            RULE,
            Level.FAIL,
            "targets lie outside the classes, or are nearly all ignored",
            f"targets in {span(first.target)} for {first.classes} classes, "
            f"{_ignored(first):.0%} ignored",
            "check the label encoding, the padding value and ignore_index",
            first.place,
        )


def _wrong(call: LossCall) -> bool:
    facts = call.target
    if facts is None or facts.ignored is None or call.classes is None:
        return False
    outside = (
        facts.low is not None
        and facts.high is not None
        and (facts.low < 0 or facts.high >= call.classes)
    )
    return outside or facts.ignored > NEARLY_ALL


def _ignored(call: LossCall) -> float:
    return (call.target.ignored if call.target is not None else None) or 0.0
