"""Most matrix products inside an autocast region run in full precision.

Something inside switches autocast off, or a compiler or wrapper does not pass it on.

Fix: find the ``autocast(enabled=False)`` region or the wrapper.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "autocast-ineffective"

# A float32 head or a norm is common; most of the products are not.
SHARE = 0.5
CALLS = 2
PRODUCTS = 2


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN if more than half of the linear and convolution layers ran in float32."""
    calls = [c for c in evidence.training_calls() if c.autocast]
    if not calls:
        yield NotChecked(RULE, "no training call ran under autocast")
        return
    wrong = [
        c
        for c in calls
        if c.full_precision >= PRODUCTS
        and c.full_precision > SHARE * (c.full_precision + c.low_precision)
    ]
    if len(wrong) >= CALLS:
        first = wrong[0]
        yield Finding(
            RULE,
            Level.WARN,
            f"{first.root} runs in float32 inside autocast",
            f"{first.full_precision} of {first.full_precision + first.low_precision} linear and "
            "convolution outputs were float32",
            "look for autocast(enabled=False) or a wrapper that loses autocast",
            first.place,
        )
