"""The output for one sample depends on other samples of the batch.

Found by replacing the last sample in evaluation mode. Typical: a reshape that mixes batch and time,
softmax over the batch. Some models mean it (sets, graphs), so this is a warning.

Fix: keep the batch dimension apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "batch-mixing"

# Rounding in another order of summation stays below.
MIXED = 1e-3


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN if other samples' outputs moved."""
    extra = evidence.trace.extra
    if extra is None or extra.mixing is None:
        skipped = extra.skipped if extra is not None else {}
        reason = skipped.get("mixing") or skipped.get("all") or "no extra forward was made"
        yield NotChecked(RULE, reason)
        return
    if extra.mixing > MIXED:
        where = f", first in {extra.mixing_module}" if extra.mixing_module else ""
        yield Finding(
            RULE,
            Level.WARN,
            f"samples of a batch influence each other in {extra.model}",
            f"replacing one sample moved the others' outputs by {extra.mixing:.2g} of their size"
            + where,
            "check view/reshape/transpose and the dim of softmax and norms for the batch dimension",
            extra.place,
        )
