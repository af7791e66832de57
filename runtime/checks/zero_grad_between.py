"""Gradients are cleared after ``backward`` and before ``step``.

The step sees no gradient, so nothing is learned.

Fix: move ``zero_grad()`` before ``backward`` or after ``step``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._words import too_few_steps
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "zero-grad-between"

# A single step without gradients can be a skipped batch.
CLEARED_STEPS = 2


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL where backward wrote gradients and the step found none of them."""
    if reason := too_few_steps(evidence, CLEARED_STEPS):
        yield NotChecked(RULE, reason)
        return
    for index, optimizer in enumerate(evidence.trace.optimizers):
        steps = evidence.own_steps(index)
        cleared = [s for s in steps if s.cleared]
        if len(cleared) >= CLEARED_STEPS and len(cleared) > len(steps) / 2:
            yield Finding(
                RULE,
                Level.FAIL,
                f"gradients of {optimizer.name} are cleared between backward and step",
                f"{len(cleared)} of {len(steps)} steps found no gradient left",
                "move zero_grad() before backward, or after step",
                cleared[0].place,
            )
