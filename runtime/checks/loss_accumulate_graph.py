"""The graphs of past steps are kept alive.

``total += loss`` or a list of losses keeps each step's graph, and memory grows until it runs out.

Fix: ``total += loss.item()`` (or ``loss.detach()``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "loss-accumulate-graph"

# As many more graphs are alive as steps were made, again and again: the last loss or a log is held
# once. What is collected over an epoch starts anew with the next, so one such row is enough.
LEAST_STEPS = 6


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN if the number of past losses that keep their graphs grows step by step."""
    steps = [s for s in evidence.trace.steps if s.lap == 0]
    if len(steps) <= LEAST_STEPS:
        yield NotChecked(RULE, f"no more than {LEAST_STEPS} steps were seen")
        return
    row = longest = 0
    for before, step in pairwise(steps):
        row = row + 1 if step.live_losses > before.live_losses else 0
        longest = max(longest, row)
    if longest < LEAST_STEPS:
        return
    most = max(steps, key=lambda s: s.live_losses)
    kept = evidence.trace.retained
    names = ", ".join(r.name for r in kept[:3])
    yield Finding(
        RULE,
        Level.WARN,
        "each step leaves its graph in memory",
        f"in {longest} steps in a row one more loss stayed alive, up to {most.live_losses} at once"
        + (f", held by {names}" if names else ""),
        "accumulate loss.item() or loss.detach() instead of the loss",
        kept[0].place if kept else most.place,
    )
