"""Labels of a language model that are shifted twice, or not at all.

The target of position t should be token t + 1. Compared with the tokens that went into the model.

Fix: shift exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "lm-double-shift"

# Random text agrees with a shift in far fewer positions.
AGREES = 0.95
BATCHES = 2
# Below this relative change, later tokens do not reach earlier outputs.
CAUSAL = 1e-3


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for a shift of two, WARN for none in a causal model."""
    calls = [c for c in evidence.trace.losses if c.shift and c.grad]
    if len(calls) < BATCHES:
        yield NotChecked(RULE, "no loss over the tokens of a language model was seen")
        return
    extra = evidence.trace.extra
    causal = extra is not None and extra.causal_leak is not None and extra.causal_leak < CAUSAL
    for shift, level, words in (("2", Level.FAIL, "twice"), ("0", Level.WARN, "not at all")):
        hits = [c for c in calls if c.shift.get(shift, 0) > AGREES > c.shift.get("1", 0)]
        if len(hits) == len(calls) and (shift == "2" or causal):
            yield Finding(
                RULE,
                level,
                f"labels are shifted {words}",
                f"targets equal the token {shift} places further on at "
                f"{hits[0].shift[shift]:.0%} of the positions",
                "the target of position t is token t + 1: shift once, in the data or in the model",
                hits[0].place,
            )
