"""The same batch again and again, and the loss does not fall.

Batch, random states and learning rate are held; almost every set-up that can learn at all lowers
the loss of one batch. The reason is given where the observed run tells it. A model with a memory of
its own (a queue of negatives) cannot be asked: the same batch is another task the next time.

Fix: see the reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "fixed-batch-not-learned"

# Of the first loss; a set-up that learns loses far more over thirty steps.
LEAST_DROP = 0.01
STEPS = 10
# Updates this small relative to the weights leave no trace in thirty steps.
SMALL_RATIO = 1e-6
# A loss that ends this much higher has diverged.
DIVERGED = 1.5
# Nor does a sound step throw the loss up this far, even if it comes back.
LEAP = 100.0


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN if the loss of the held batch stays where it was, grows, or leaps up on its way."""
    fixed = evidence.fixed
    losses = [s.loss for s in fixed.steps if s.loss is not None] if fixed is not None else []
    if fixed is None or len(losses) < STEPS:
        reason = evidence.skipped.get("fixed batch") or "too few steps in the fixed-batch phase"
        yield NotChecked(RULE, reason)
        return
    start, best, end = losses[1], min(losses[1:]), sum(losses[-3:]) / 3
    scale = max(abs(start), 1e-3)
    leapt = max(losses) > LEAP * max(abs(losses[0]), 1e-3)
    grew = end > start + DIVERGED * scale
    if (start - best) / scale > LEAST_DROP and not grew and not leapt:
        return
    if fixed.own_state and not leapt:
        reason = f"the model keeps a memory of the samples it has seen: {fixed.own_state[0]}"
        yield NotChecked(RULE, reason)
        return
    numbers = f"{start:.4g} at the start, {best:.4g} at best, {end:.4g} after {len(losses)} steps"
    if leapt:
        numbers = f"{losses[0]:.4g} at the start, {max(losses):.4g} at worst"
    yield Finding(
        RULE,
        Level.WARN,
        "the loss of one fixed batch " + ("leaps up" if leapt else "does not fall"),
        numbers + _reason(evidence, leapt or grew),
        "check the learning rate, the gradient's way to the weights, and the loss's sign",
        fixed.steps[0].place,
    )


def _reason(evidence: Evidence, grew: bool) -> str:
    if grew:
        return "; the loss grows: the learning rate is likely too large"
    ratio = _ratio(evidence)
    if ratio is not None and ratio < SMALL_RATIO:
        return f"; updates are {ratio:.1g} of the weights: the learning rate is likely too small"
    return ""


def _ratio(evidence: Evidence) -> float | None:
    steps = [s for s in evidence.trace.steps if s.weight_norm]
    return max((s.update_norm / s.weight_norm for s in steps), default=None)
