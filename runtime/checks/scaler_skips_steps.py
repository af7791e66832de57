"""The GradScaler skips most steps because gradients overflow.

A few skips at the start are normal while the scale finds its level.

Fix: look for the operation that overflows in fp16.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "scaler-skips-steps"

# The scale starts at 2**16 and halves at each skip; clean programs settle within a few.
MOST_SKIPS = 5


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN for more skipped steps than settling explains."""
    events = evidence.trace.events
    if not any(e.kind == "scale" for e in events):
        yield NotChecked(RULE, "no active GradScaler was seen")
        return
    skipped = [e for e in events if e.kind == "step-skipped"]
    if len(skipped) > MOST_SKIPS:
        yield Finding(
            RULE,
            Level.WARN,
            f"the GradScaler skipped {len(skipped)} steps",
            f"{len(evidence.trace.steps)} steps were made, {len(skipped)} skipped for overflow",
            "find the operation that overflows in half precision",
            skipped[0].place,
        )
