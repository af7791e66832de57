"""Attention or a recurrent layer without ``batch_first=True`` is fed batch-first data.

It then attends over the samples of the batch; all shapes fit, so nothing fails.

Fix: set ``batch_first=True`` or transpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "mha-batch-first"

MIXED = 1e-3


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL if samples first influence each other inside such a layer."""
    extra = evidence.trace.extra
    if extra is None or extra.mixing is None:
        yield NotChecked(RULE, "no extra forward was made")
        return
    if extra.mixing > MIXED and extra.sequence_first_module:
        yield Finding(
            RULE,
            Level.FAIL,
            f"{extra.sequence_first_module} treats the batch as the sequence",
            f"{extra.mixing_module} has batch_first=False, and replacing one sample moved the "
            f"others' outputs by {extra.mixing:.2g} of their size",
            "set batch_first=True, or transpose to (sequence, batch, features)",
            extra.place,
        )
