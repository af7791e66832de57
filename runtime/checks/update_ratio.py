"""The size of updates relative to the weights.

About 1e-3 is usual. Clean programs were measured between 1e-5 and 0.1 after the first steps.

Fix: change the learning rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "update-ratio"

# Clean programs: 1.3e-5 to 0.1 at step 19, so these are far outside.
TOO_LARGE = 0.3
TOO_SMALL = 1e-7
# The first steps of Adam and of zero-initialised heads are large.
AFTER = 4


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN for an optimizer whose updates are far outside the usual range, on average."""
    for index, optimizer in enumerate(evidence.trace.optimizers):
        steps = [s for s in evidence.own_steps(index) if s.own >= AFTER and s.weight_norm > 0]
        ratios = [s.update_norm / s.weight_norm for s in steps if s.update_norm > 0]
        if len(ratios) < AFTER:
            reason = f"too few steps of {optimizer.name} were seen"
            yield NotChecked(RULE, reason)
            continue
        logs = [math.log(r) for r in ratios if math.isfinite(r)]
        mean = math.exp(sum(logs) / len(logs)) if logs else 1e-3
        warming = steps[-1].lrs and max(steps[-1].lrs) > 2 * max(steps[0].lrs)
        if TOO_SMALL < mean < TOO_LARGE or (mean <= TOO_SMALL and warming):
            continue
        large = mean >= TOO_LARGE
        yield Finding(
            RULE,
            Level.WARN,
            f"updates of {optimizer.name} are {'large' if large else 'tiny'}",
            f"updates are {mean:.2g} of the weights on average (about 1e-3 is usual), learning "
            f"rate {max(steps[-1].lrs):.3g}",
            f"{'lower' if large else 'raise'} the learning rate",
            optimizer.place,
        )
    if not evidence.trace.optimizers:
        yield NotChecked(RULE, "the script made no torch optimizer")
