"""The share of a step spent waiting for the DataLoader.

Fix: more workers, ``pin_memory``, ``persistent_workers``, a faster transform.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "data-wait"

WAITING = 0.5
STEPS = 6
# Shorter steps are dominated by Python itself.
LEAST_SECONDS = 0.05


def check(evidence: Evidence) -> Iterator[Result]:
    """NOTE if most of the time of a step is waiting; measured on this machine only."""
    steps = [s for s in evidence.trace.steps if s.lap == 0][1:]
    if len(steps) < STEPS:
        yield NotChecked(RULE, "too few steps were seen")
        return
    total, waited = sum(s.seconds for s in steps), sum(s.data_wait for s in steps)
    if total / len(steps) > LEAST_SECONDS and waited > WAITING * total:
        yield Finding(
            RULE,
            Level.NOTE,
            "most of the time is spent waiting for data",
            f"{waited / total:.0%} of {total / len(steps):.3g} s a step",
            "use more workers, or make the dataset's __getitem__ cheaper",
        )
