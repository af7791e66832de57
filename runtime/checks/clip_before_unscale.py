"""Gradients are clipped while they are still multiplied by the loss scale.

The threshold then means nothing: with a scale of 65536 every gradient is clipped to almost zero.

Fix: ``scaler.unscale_(optimizer)`` before clipping.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "clip-before-unscale"

CLIPS = 2


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for clipping under an active, not yet undone loss scale."""
    trace = evidence.trace
    clips = [e for e in trace.events if e.kind == "clip" and "measuring" not in e.detail]
    if not clips:
        yield NotChecked(RULE, "the script does not clip gradients")
        return
    scaled = any(e.kind == "scale" for e in trace.events)
    wrong = [e for e in clips if e.detail.split()[:1] == ["scaled"]]
    if scaled and len(wrong) >= CLIPS:
        yield Finding(
            RULE,
            Level.FAIL,
            "gradients are clipped before they are unscaled",
            f"{len(wrong)} of {len(clips)} clips saw gradients multiplied by the loss scale",
            "call scaler.unscale_(optimizer) before clipping",
            wrong[0].place,
        )
