"""An element-wise loss compares two shapes that broadcast, such as (N, 1) and (N,).

Each prediction is compared with each target, and the model learns the mean.

Fix: give both the same shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainlint.runtime.checks._losses import BATCHES, NO_LOSS, first_wrong, training_losses
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import LossCall

RULE = "mse-broadcast"


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL where the comparison is larger than both sides."""
    yield from _hand_written(evidence)
    calls = training_losses(evidence, "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
    if not calls and not evidence.trace.backwards:
        yield NotChecked(RULE, NO_LOSS)
        return
    first = first_wrong(calls, _wrong)
    if first is not None:
        yield Finding(
            RULE,
            Level.FAIL,
            "prediction and target broadcast against each other",
            f"prediction {first.input.shape} against target "
            f"{first.target.shape if first.target else []}",
            "give both the same shape, e.g. target.unsqueeze(1) or output.squeeze(1)",
            first.place,
        )


def _hand_written(evidence: Evidence) -> Iterator[Finding]:
    """A difference in the graph right behind the loss whose result is an outer one."""
    found = [b for b in evidence.trace.backwards if b.batch_axes]
    if len(found) < BATCHES:
        return
    shapes = found[0].batch_axes[0]
    yield Finding(
        RULE,
        Level.FAIL,
        "prediction and target broadcast against each other",
        f"a prediction of shape {shapes[:-2]} takes part in a difference of shape {shapes[-2:]} "
        "right before the loss",
        "give both the same shape, e.g. target.unsqueeze(1) or output.squeeze(1)",
        found[0].place,
    )


def _wrong(call: LossCall) -> bool:
    if call.target is None or call.input.shape == call.target.shape:
        return False
    one, other = call.input.shape, call.target.shape
    return math.prod(_together(one, other)) > max(math.prod(one), math.prod(other))


def _together(one: list[int], other: list[int]) -> list[int]:
    size = max(len(one), len(other))
    left, right = ([1] * (size - len(s)) + s for s in (one, other))
    return [max(a, b) for a, b in zip(left, right, strict=True)]
