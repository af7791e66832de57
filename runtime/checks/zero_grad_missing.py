"""Gradients are never reset between two steps of their own parameter.

Each step then uses the sum of all gradients since the start. A buffer counts as stale only if it
was bit for bit the same object, unchanged and not zero, from one step to the next backward:
accumulation, clipping, unscaling, SAM and several losses do not look like that.

Fix: call ``optimizer.zero_grad()`` once per step, before ``backward``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._words import named, too_few_steps
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "zero-grad-missing"

# The first step has nothing to be stale; two stale steps in a row rule out a one-off.
STALE_STEPS = 2


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for each optimizer that repeatedly stepped on stale gradients."""
    if reason := too_few_steps(evidence, STALE_STEPS + 1):
        yield NotChecked(RULE, reason)
        return
    for index, optimizer in enumerate(evidence.trace.optimizers):
        stale = [s for s in evidence.own_steps(index) if s.stale]
        if len(stale) < STALE_STEPS:
            continue
        params = [p for p in evidence.owned(index) if p.stale]
        yield Finding(
            RULE,
            Level.FAIL,
            f"gradients of {optimizer.name} are never cleared",
            f"{len(stale)} of {optimizer.steps} steps used gradients that still held an earlier "
            f"step's: {named(params)}",
            "call optimizer.zero_grad() before each backward (or after each step)",
            stale[0].place,
        )
