"""The same parameter stands in two groups or two optimizers.

It is then updated twice a step, with two sets of moments. Optimizers that follow one another (a
learning rate finder, then training; one stage after another) share nothing.

Fix: give each parameter to one group of one optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from trainlint.runtime.checks._words import named
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import Trace

RULE = "duplicate-params"


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL within one optimizer, WARN across optimizers (some methods mean it)."""
    trace = evidence.trace
    if not trace.optimizers:
        yield NotChecked(RULE, "the script made no torch optimizer")
        return
    twice = [p for p in trace.params if len(p.optimizers) > len(set(p.optimizers))]
    both = [p for p in trace.params if _in_turns(trace, set(p.optimizers))]
    for params, level, where in (
        (twice, Level.FAIL, "twice in one optimizer"),
        (both, Level.WARN, "in two optimizers that step in turns"),
    ):
        if params:
            yield Finding(
                RULE,
                level,
                f"{len(params)} parameters are {where}",
                f"each is updated more than once: {named(params)}",
                "give each parameter to one group of one optimizer",
                trace.optimizers[params[0].optimizers[-1]].place,
            )


def _in_turns(trace: Trace, optimizers: set[int]) -> bool:
    """Whether one of them steps again after another one has."""
    order = [s.optimizer for s in trace.steps if s.optimizer in optimizers]
    changes = sum(one != following for one, following in pairwise(order))
    return changes >= max(2, len(set(order)))
