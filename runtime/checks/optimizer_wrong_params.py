"""An optimizer whose parameters never get a gradient, although backward reaches others.

Typical: the optimizer was built from another network, or from a copy made before the model was
wrapped, moved or replaced.

Fix: build it from the parameters of the model that is called.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._words import named, too_few_steps
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "optimizer-wrong-params"

# Own steps without any gradient; phases of a GAN or a warm-up may leave one or two empty.
STEPS = 3


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for an optimizer that never saw a gradient."""
    trace = evidence.trace
    if reason := too_few_steps(evidence, STEPS):
        yield NotChecked(RULE, reason)
        return
    reached = [p for p in trace.params if p.backwards]
    for index, optimizer in enumerate(trace.optimizers):
        steps = evidence.own_steps(index)
        empty = [s for s in steps if not s.with_grad and not s.cleared]
        if len(steps) < STEPS or len(empty) < len(steps):
            continue
        frozen = all(not p.requires_grad for p in evidence.owned(index))
        strangers = [p for p in reached if index not in p.optimizers]
        if not frozen and not strangers:
            continue
        yield Finding(
            RULE,
            Level.FAIL,
            f"{optimizer.name} holds only "
            + ("frozen parameters" if frozen else "parameters that backward never reaches"),
            f"{len(steps)} steps, none of its {steps[0].total} parameters ever had a gradient"
            + (f"; gradients went to {named(strangers)}" if strangers else ""),
            "build the optimizer from the parameters of the model that is trained",
            optimizer.place,
        )
