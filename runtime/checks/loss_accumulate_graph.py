"""The graphs of past steps are kept alive.

``total += loss`` or a list of losses keeps each step's graph, and memory grows until it runs out.

Fix: ``total += loss.item()`` (or ``loss.detach()``).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "loss-accumulate-graph"

# Graphs that are alive grow with the steps; a few (the last loss, a log) do not.
LEAST_STEPS = 6
SHARE = 0.8


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN if nearly all past losses still have their graphs."""
    steps = [s for s in evidence.trace.steps if s.lap == 0]
    if len(steps) < LEAST_STEPS:
        yield NotChecked(RULE, f"fewer than {LEAST_STEPS} steps were seen")
        return
    first, last = steps[1], steps[-1]
    grown = last.live_losses - first.live_losses
    backwards = len([b for b in evidence.trace.backwards if b.step <= last.own])
    if grown < SHARE * (len(steps) - 2) or not backwards:
        return
    kept = evidence.trace.retained
    names = ", ".join(r.name for r in kept[:3])
    yield Finding(
        RULE,
        Level.WARN,
        "each step leaves its graph in memory",
        f"after {len(steps)} steps, {last.live_losses} graphs of past losses are alive"
        + (f", held by {names}" if names else ""),
        "accumulate loss.item() or loss.detach() instead of the loss",
        kept[0].place if kept else last.place,
    )
