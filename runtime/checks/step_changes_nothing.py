"""Steps that leave every parameter bit for bit as it was.

Judged over all steps of an optimizer, because a warm-up may start at a learning rate of zero; and
from some step on, because an optimizer may stop updating.

Fix: see the evidence; usually the learning rate, the gradients or a wrapped optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._words import too_few_steps
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "step-changes-nothing"

# Own steps that all change nothing.
STEPS = 3


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL where gradients are there and nothing moves."""
    if reason := too_few_steps(evidence, STEPS):
        yield NotChecked(RULE, reason)
        return
    for index, optimizer in enumerate(evidence.trace.optimizers):
        steps = [s for s in evidence.own_steps(index) if not s.cleared]
        moving = [s for s in steps if s.changed]
        with_grad = [s for s in steps if s.with_grad > s.zero_grad and s.lrs and max(s.lrs) > 0]
        since = steps.index(moving[-1]) + 1 if moving else 0
        idle = [
            s for s in with_grad if s.own >= (steps[since].own if since < len(steps) else 10**9)
        ]
        if len(idle) < STEPS:
            continue
        when = f"from step {since} on" if moving else "at any step"
        yield Finding(
            RULE,
            Level.FAIL,
            f"{optimizer.name}.step() changes no parameter {when}",
            f"{len(idle)} steps with gradients (norm {idle[0].grad_norm:.3g}) and learning rate "
            f"{max(idle[0].lrs):.3g} left all {idle[0].total} parameters as they were",
            "check that the optimizer's own step runs and that it holds the live parameters",
            idle[0].place,
        )
