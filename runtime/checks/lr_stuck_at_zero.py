"""The learning rate is zero at every step.

Fix: check the schedule and the base learning rate.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._words import too_few_steps
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "lr-stuck-at-zero"

# A warm-up from zero leaves it after the first step.
STEPS = 3


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL if all groups had a rate of zero throughout."""
    if reason := too_few_steps(evidence, STEPS):
        yield NotChecked(RULE, reason)
        return
    for index, optimizer in enumerate(evidence.trace.optimizers):
        steps = evidence.own_steps(index)
        if len(steps) >= STEPS and all(rate == 0 for s in steps for rate in s.lrs):
            yield Finding(
                RULE,
                Level.FAIL,
                f"the learning rate of {optimizer.name} is zero",
                f"it was 0 at all {len(steps)} steps",
                "check the base learning rate and the schedule's units",
                steps[0].place,
            )
