"""Zeroed inputs give the same loss curve as the real batch.

The model learns without looking at its input: the label distribution, or the answer by position.

Fix: check that the input reaches the output.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "input-independent"

# Of the drop on the real batch; the control explains nearly all of it.
SAME = 0.98
# The drop must be real before its cause can be asked.
LEAST_DROP = 0.2


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN if the zeroed control learns as well as the fixed batch."""
    if evidence.fixed is None or evidence.zeroed is None:
        reason = evidence.skipped.get("fixed batch") or "no fixed-batch phase ran"
        yield NotChecked(RULE, reason)
        return
    real, zero = (
        [s.loss for s in t.steps if s.loss is not None] for t in (evidence.fixed, evidence.zeroed)
    )
    size = min(len(real), len(zero))
    if evidence.fixed.held != "loader":
        yield NotChecked(RULE, "no DataLoader delivers the batches")
        return
    if size < 10 or not evidence.zeroed.held:
        yield NotChecked(RULE, "the inputs of the fixed batch could not be zeroed")
        return
    drop = real[1] - real[size - 1]
    if drop < LEAST_DROP * abs(real[1]) or drop <= 0:
        return
    gap = max(abs(a - b) for a, b in zip(real[1:size], zero[1:size], strict=True))
    if gap < (1 - SAME) * drop:
        yield Finding(
            RULE,
            Level.WARN,
            "the model learns the same without its input",
            f"with zeroed inputs loss fell from {zero[1]:.4g} to {zero[size - 1]:.4g}, with the "
            f"real batch from {real[1]:.4g} to {real[size - 1]:.4g}",
            "check that the input reaches the output (dead layers, constant features, leaks)",
            evidence.fixed.steps[0].place,
        )
