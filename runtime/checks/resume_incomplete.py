"""A checkpoint made for resuming lacks part of the training state.

It has a position (epoch, step) or an optimizer, so it is meant for resuming, and something that is
alive in the script is missing: the state of the optimizer, the learning rate schedule, the
GradScaler or the averaged weights (EMA). Random number generators alone are a NOTE: few checkpoints
have them, and without them training resumes well, but with other batches and dropout masks.

Fix: save optimizer, scheduler, scaler, averaged weights and random states too.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import SavedState

RULE = "resume-incomplete"

# Missing alone, it makes a resumed run different but not worse.
RANDOM_STATE = "random number generators"


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN for a resumable checkpoint that misses live state, NOTE for random state alone."""
    saves = [s for s in evidence.trace.saves if s.model]
    if not saves:
        yield NotChecked(RULE, "no torch.save of a model was seen")
        return
    meant = [s for s in saves if "position" in s.has or "optimizer" in s.has]
    if not meant:
        return
    best = min(meant, key=lambda save: len(_missing(save)))
    missing = _missing(best)
    if not missing:
        return
    harmless = missing == [RANDOM_STATE]
    yield Finding(
        RULE,
        Level.NOTE if harmless else Level.WARN,
        "a resumed run will draw other random numbers"
        if harmless
        else "the checkpoint cannot resume training exactly",
        f"it holds {', '.join(best.entries[:8]) or 'the model'}, but not the state of "
        f"{', '.join(missing)}",
        f"save and restore {', '.join(missing)} as well",
        best.place,
    )


def _missing(save: SavedState) -> list[str]:
    return [part for part in save.live if part not in save.has]
