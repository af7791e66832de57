"""Frozen parameters that steps still change, and optimizers that hold mostly frozen ones.

A frozen parameter whose gradient buffer is a zero tensor is still moved by weight decay and
momentum.

Fix: freeze before the optimizer is built, or set ``p.grad = None``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._words import named, too_few_steps
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "frozen-params-in-optimizer"

# More than one step, so that freezing in the middle of a step is not counted.
STEPS = 2


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN for frozen parameters that move."""
    if reason := too_few_steps(evidence, STEPS):
        yield NotChecked(RULE, reason)
        return
    moved = [p for p in evidence.trace.params if p.frozen_but_changed >= STEPS]
    if moved:
        yield Finding(
            RULE,
            Level.WARN,
            f"{len(moved)} frozen parameters are still changed by the optimizer",
            f"requires_grad is False, yet steps moved them (weight decay or momentum): "
            f"{named(moved)}",
            "leave them out of the optimizer, or set their grad to None when freezing",
            evidence.trace.optimizers[moved[0].optimizers[0]].place
            if moved[0].optimizers
            else None,
        )
