"""Rectifier units that are never active.

A unit counts as dead if its largest output over several batches is zero.

Fix: smaller learning rate, other initialisation, leaky activation.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "dead-units"

# Clean networks: at most 0.03, and 0.23 on tiny maps.
DEAD_SHARE = 0.5
OBSERVATIONS = 3
UNITS = 8


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN for layers in which most units are dead."""
    layers = [a for a in evidence.trace.activations if a.observations >= OBSERVATIONS]
    layers = [a for a in layers if a.units >= UNITS and a.dead is not None]
    if not layers:
        yield NotChecked(RULE, "no rectifier was measured on three batches")
        return
    dead = [a for a in layers if (a.dead or 0) > DEAD_SHARE]
    if dead:
        worst = max(dead, key=lambda a: a.dead or 0)
        yield Finding(
            RULE,
            Level.WARN,
            f"most units of {len(dead)} rectifier layers are dead",
            f"{worst.dead:.0%} of the {worst.units} units of {worst.name} were zero for every "
            f"sample of {worst.observations} batches",
            "check the initialisation and bias, lower the learning rate, or use a leaky activation",
        )
