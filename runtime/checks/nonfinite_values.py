"""A loss or gradient became NaN or infinite.

The first step is replayed under a mode that looks at the output of each operation, to name the one
that turned finite inputs into a non-finite output. Steps that a GradScaler skipped are expected
and do not count.

Fix: see the named operation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "nonfinite-values"


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL with the first operation where the replay could name it."""
    trace = evidence.trace
    if not trace.steps:
        yield NotChecked(RULE, "no optimizer step was seen")
        return
    for index, step in enumerate(trace.steps):
        bad_loss = step.loss is not None and not math.isfinite(step.loss)
        if not bad_loss and not step.nonfinite_grads:
            continue
        what = (
            f"the loss is {step.loss}"
            if bad_loss
            else (f"{step.nonfinite_grads} gradients are not finite, first {step.first_nonfinite}")
        )
        bad = evidence.replay.bad if evidence.replay is not None else None
        origin = "; the replay could not name the operation"
        if bad is not None:
            side = "backward of " if bad.backward else ""
            origin = f"; first bad operation: {side}{bad.operation} in {bad.module or 'the script'}"
            origin += f", inputs {'; '.join(bad.inputs)}"
        yield Finding(
            RULE,
            Level.FAIL,
            f"non-finite values at step {index}",
            what + origin,
            "guard the operation (clamp, eps inside sqrt/log/division) or lower the learning rate",
            bad.place if bad is not None and bad.place is not None else step.place,
        )
        return
