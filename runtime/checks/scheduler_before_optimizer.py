"""The scheduler steps before the optimizer does.

The first value of the schedule is skipped.

Fix: ``optimizer.step()`` first, then ``scheduler.step()``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "scheduler-before-optimizer"


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN if a scheduler stepped before any step, or skipped attempt, of its optimizer."""
    trace = evidence.trace
    if not trace.schedulers:
        yield NotChecked(RULE, "no learning rate scheduler was seen")
        return
    started: set[int | None] = set()
    for event in trace.events:
        if event.kind in ("step", "step-skipped"):
            started.add(event.subject)
        if event.kind != "scheduler-step" or event.subject is None:
            continue
        scheduler = trace.schedulers[event.subject]
        if scheduler.optimizer not in started and trace.steps:
            yield Finding(
                RULE,
                Level.WARN,
                f"{scheduler.name} steps before the optimizer",
                "the first scheduler.step() came before the first optimizer.step()",
                "call optimizer.step() before scheduler.step()",
                event.place,
            )
            return
