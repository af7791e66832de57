"""Softmax over the batch dimension.

Each class is normalised over the samples of the batch, and an output depends on its batch mates.
Attention with the sequence first normalises over another dimension, and pooling over dimension 0
of an unbatched tensor does not have the batch's size.

Fix: normalise over the class dimension (``dim=-1``).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "softmax-wrong-dim"

CALLS = 2


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for a two-dimensional prediction normalised over its samples.

    What is a sample is known from a loader. Where there is none, only a model's own output that is
    normalised outside it can be told, and is a WARN.
    """
    trace = evidence.trace
    whole = trace.extra.output_shape if trace.extra is not None else []
    sizes = {p.batch_size for p in trace.passes if p.backwards and p.batch_size}
    calls = [
        c for c in trace.losses if "softmax" in c.function and c.grad and c.input.requires_grad
    ]
    if not calls:
        yield NotChecked(RULE, "no call of softmax with gradients was seen")
        return
    wrong = [
        c
        for c in calls
        if c.options.get("dim") == 0 and len(c.input.shape) == 2 and c.input.shape[1] > 1
    ]
    if sizes:
        wrong = [c for c in wrong if c.input.shape[0] in sizes]
    else:
        wrong = [c for c in wrong if c.options["outside"] and c.input.shape == whole]
    if len(wrong) >= CALLS:
        yield Finding(
            RULE,
            Level.FAIL if sizes else Level.WARN,
            f"{wrong[0].function} over the batch dimension",
            f"an input of shape {wrong[0].input.shape} is normalised over dimension 0, its samples",
            "normalise over the classes: dim=-1",
            wrong[0].place,
        )
