"""A schedule planned in one unit is stepped in another.

Stepped at each optimizer step, but planned for fewer steps than one pass over the loader; or
stepped once an epoch, but planned for as many steps as the loader has batches.

Fix: count the horizon in the unit in which ``step()`` is called.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "scheduler-cadence-mismatch"

# Fewer steps do not tell per batch from per epoch.
STEPS = 5
# Shorter loaders do not tell a number of batches from a number of epochs.
BATCHES = 20


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN for a planned horizon that does not fit the loader."""
    trace = evidence.trace
    planned = [s for s in trace.schedulers if s.horizon and s.optimizer is not None]
    lengths = [p.length for p in trace.passes if p.backwards and p.length]
    if not planned or not lengths or len(trace.steps) < STEPS:
        yield NotChecked(RULE, "no schedule with a planned length over a loader was seen")
        return
    length = lengths[0]
    for scheduler in planned:
        first_lap = [s for s in trace.steps if s.lap == 0 and s.optimizer == scheduler.optimizer]
        backwards = max((s.backwards for s in first_lap), default=1) or 1
        per_pass = length // backwards
        horizon = scheduler.horizon or 0
        each_step = scheduler.steps_before_end >= max(STEPS, len(first_lap) - 1)
        if each_step and horizon < per_pass and per_pass > len(first_lap):
            text = f"stepped at each step and planned for {horizon} steps, but one pass takes "
            text += f"{per_pass}"
        elif not each_step and scheduler.steps == 1 and horizon % length == 0 and length >= BATCHES:
            text = f"stepped once a pass and planned for {horizon} steps, the loader's {length} "
            text += "batches: the rate will hardly move"
        else:
            continue
        yield Finding(
            RULE,
            Level.WARN,
            f"{scheduler.name} is planned in another unit than it is stepped",
            text,
            "count the schedule's length in the unit in which scheduler.step() is called",
            scheduler.place,
        )
