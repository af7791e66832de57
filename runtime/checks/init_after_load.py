"""Weights are initialised again after a checkpoint was loaded, or after a special initialisation.

``model.apply(init_weights)`` on a whole model also runs over the parts that have been given their
values before. A new head on loaded weights is what fine-tuning does, and is left alone.

Fix: initialise first, then load; let the outermost model initialise once, special cases last.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "init-after-load"

# Of the loaded parameters; replacing a head touches a few.
LOST_SHARE = 0.5
_LOAD = "load_state_dict"


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for loaded weights that were lost, WARN for an initialisation that was."""
    trace = evidence.trace
    if not trace.steps:
        yield NotChecked(RULE, "no optimizer step was seen")
        return
    for lost in trace.overwritten:
        loaded = lost.what == _LOAD
        if loaded and lost.count <= LOST_SHARE * lost.of:
            continue
        before = "the values from load_state_dict" if loaded else f"what {lost.what} had set"
        yield Finding(
            RULE,
            Level.FAIL if loaded else Level.WARN,
            "weights are initialised again, and lose the values they were given",
            f"{lost.count} parameters, the first of shape {tuple(lost.shape)}, lost {before}"
            + (f" ({lost.count} of {lost.of} loaded ones)" if loaded else ""),
            "initialise before loading, and only once: special cases after the general one",
            lost.place,
        )
