"""Updates smaller than the precision of bf16 or fp16 weights.

The step computes an update and adding it rounds back to the old value. Elements with a gradient
that stay the same are counted; stochastic rounding and master weights do not look like that.

Fix: keep fp32 master weights (autocast instead of ``model.bfloat16()``), or a larger rate.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._words import too_few_steps
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "update-lost-to-rounding"

# All but one in a hundred updates lost: the parameter is frozen in practice.
LOST_FAIL = 0.99
LOST_WARN = 0.5
STEPS = 3


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL if nearly every update is lost over the run, WARN for half of them."""
    if reason := too_few_steps(evidence, STEPS):
        yield NotChecked(RULE, reason)
        return
    low = [p for p in evidence.trace.params if len(p.lost) >= STEPS]
    if not low:
        return
    total = sum(p.numel for p in low)
    share = sum(p.numel * sum(p.lost) / len(p.lost) for p in low) / total
    rates = [rate for s in evidence.trace.steps for rate in s.lrs]
    if share < LOST_WARN or not any(rates):
        return
    yield Finding(
        RULE,
        Level.FAIL if share > LOST_FAIL else Level.WARN,
        f"{share:.0%} of the updates to {low[0].dtype} weights are lost to rounding",
        f"{len(low)} parameters in {low[0].dtype}; elements with a gradient that a step left "
        f"exactly as they were: {share:.1%} on average",
        "keep the weights in float32 and use autocast, or raise the learning rate",
        evidence.trace.optimizers[0].place,
    )
