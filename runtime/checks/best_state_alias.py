"""A variable that promises a snapshot shares memory with the live weights.

``best = model.state_dict()`` keeps references; so does its ``.copy()``, and ``ema = model``.

Fix: ``copy.deepcopy(model.state_dict())``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "best-state-alias"


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for a snapshot by name that is none in memory, after steps were made."""
    trace = evidence.trace
    if not trace.steps or trace.ending.kind != "stopped":
        yield NotChecked(RULE, "the variables could not be looked at while the script ran")
        return
    for alias in trace.aliases:
        what = "holds the same tensors as" if alias.kind == "state" else "is the same object as"
        yield Finding(
            RULE,
            Level.FAIL,
            f"{alias.name} is not a copy",
            f"{alias.name} {what} the live {alias.of}: it changes with every step",
            "copy.deepcopy(model.state_dict()) (or deepcopy the model)",
            alias.place,
        )
