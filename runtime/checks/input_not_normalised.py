"""Inputs with the raw range of image bytes.

Standardised values, token ids and counts are left alone: only image-like tensors count.

Fix: divide by 255 and normalise.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "input-not-normalised"

# Standardised images stay below 3; bytes reach 255.
HIGH = 100.0


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN for image batches that look like bytes."""
    passes = [p for p in evidence.trace.passes if p.backwards and p.inputs]
    if not passes:
        yield NotChecked(RULE, "no training loader was seen")
        return
    seen = passes[0].inputs
    image = seen["dims"] == 4 and seen["float"] == 1
    if image and seen["high"] > HIGH and seen["low"] >= 0:
        yield Finding(
            RULE,
            Level.WARN,
            "images are not normalised",
            f"values from {seen['low']:.3g} to {seen['high']:.3g}, mean {seen['mean']:.3g}",
            "scale to [0, 1] and normalise by mean and standard deviation",
            passes[0].place,
        )
