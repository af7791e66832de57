"""Softmax over a dimension of size one: the output is constant and the gradient zero.

Fix: use one output with a sigmoid, or as many outputs as classes.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import LossCall

RULE = "softmax-single-class"

CALLS = 2


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for softmax or cross entropy over a single entry, with gradients."""
    trace = evidence.trace
    if not trace.losses:
        yield NotChecked(RULE, "no call of softmax or of a loss function was seen")
        return
    wrong = [c for c in trace.losses if c.grad and c.input.requires_grad and _single(c)]
    if len(wrong) >= CALLS:
        first = wrong[0]
        yield Finding(
            RULE,
            Level.FAIL,
            f"{first.function} over a dimension of size one",
            f"the input has shape {first.input.shape}: the result is constant, its gradient zero",
            "use a sigmoid with one output, or one output for each class",
            first.place,
        )


def _single(call: LossCall) -> bool:
    if "softmax" in call.function:
        dim = call.options.get("dim")
        return isinstance(dim, int) and call.input.shape[dim] == 1
    return call.function == "cross_entropy" and call.classes == 1 and len(call.input.shape) > 1
