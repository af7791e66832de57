"""``scaler.step`` is called, ``scaler.update`` is not.

The scale never adapts, and the next step fails or overflows for ever.

Fix: call ``scaler.update()`` once per step.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "scaler-update-missing"
# What torch says at the second step, of step() or of unscale_().
REFUSALS = ("since the last update", "unscale_() is being called after step()")


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for scaled steps without any update."""
    events = evidence.trace.events
    if not any(e.kind == "scale" for e in events):
        yield NotChecked(RULE, "no active GradScaler was seen")
        return
    steps = [e for e in events if e.kind in ("step", "step-skipped")]
    refused = any(refusal in evidence.trace.ending.detail for refusal in REFUSALS)
    updated = any(e.kind == "scaler-update" for e in events)
    if not updated and (len(steps) >= 2 or (steps and refused)):
        yield Finding(
            RULE,
            Level.FAIL,
            "the GradScaler is never updated",
            f"{len(steps)} steps, no scaler.update()",
            "call scaler.update() after scaler.step(optimizer)",
            steps[0].place,
        )
