"""Backward runs again and again, and no optimizer ever steps.

Parameters that the script updates by hand count as steps.

Fix: call ``optimizer.step()`` after ``backward``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "optimizer-step-missing"

# Accumulation can be long, but the probe has given up waiting by then.
BACKWARDS = 8


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL if an optimizer exists, gradients flow into it, and it never steps."""
    trace = evidence.trace
    if not trace.backwards:
        yield NotChecked(RULE, "no backward was seen")
        return
    for index, optimizer in enumerate(trace.optimizers):
        reached = [p for p in evidence.owned(index) if p.backwards >= BACKWARDS]
        if optimizer.attempts or not reached or any(p.moved_by_hand for p in reached):
            continue
        if any(len(p.optimizers) > 1 for p in reached) or (
            len(trace.optimizers) > 1 and trace.steps
        ):
            continue
        yield Finding(
            RULE,
            Level.FAIL,
            f"{optimizer.name} never steps",
            f"{len(trace.backwards)} backwards wrote gradients for it, and step() was not called",
            "call optimizer.step() after backward",
            trace.backwards[0].place,
        )
