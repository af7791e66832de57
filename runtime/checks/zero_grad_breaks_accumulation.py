"""Gradients are accumulated over several backwards, but cleared before each of them.

Only the last micro-batch counts: k times the compute for one k-th of the gradient.

Fix: clear gradients once per step, where the step is.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._words import too_few_steps
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "zero-grad-breaks-accumulation"

# The same number of discarded backwards at each of this many steps is a pattern.
STEPS = 3


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL where each step threw away the backwards before its last one."""
    if reason := too_few_steps(evidence, STEPS):
        yield NotChecked(RULE, reason)
        return
    for index, optimizer in enumerate(evidence.trace.optimizers):
        steps = evidence.own_steps(index)
        wasted = [s for s in steps if s.discarded_backwards]
        if len(steps) >= STEPS and len(wasted) >= len(steps) - 1:
            step = wasted[-1]
            yield Finding(
                RULE,
                Level.FAIL,
                "accumulated gradients are cleared before they are used",
                f"of {step.backwards} backwards before each step of {optimizer.name}, "
                f"{step.discarded_backwards} were cleared unused",
                "call zero_grad() only when a step was made",
                step.place,
            )
