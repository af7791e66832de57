"""Tanh or sigmoid layers whose outputs are nearly all at their ends.

Almost no gradient passes a saturated unit.

Fix: smaller initial weights, normalised inputs.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "saturated-activations"

# Share of outputs beyond 0.97 of the range; clean tanh networks stay far below.
SATURATED = 0.6
OBSERVATIONS = 3


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN for hidden layers that are saturated from the start."""
    layers = [a for a in evidence.trace.activations if len(a.saturated) >= OBSERVATIONS]
    if not layers:
        yield NotChecked(RULE, "no tanh or sigmoid layer was measured")
        return
    bad = [a for a in layers if min(a.saturated) > SATURATED]
    if bad:
        worst = max(bad, key=lambda a: min(a.saturated))
        yield Finding(
            RULE,
            Level.WARN,
            f"{len(bad)} layers are saturated",
            f"{min(worst.saturated):.0%} of the outputs of {worst.name} ({worst.cls}) lie at the "
            "ends of their range",
            "scale down the initial weights, or normalise the inputs",
        )
