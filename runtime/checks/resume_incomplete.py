"""A checkpoint made for resuming lacks part of the training state.

It has a position (epoch, step) or an optimizer, so it is meant for resuming, and something that is
alive in the script is missing.

Fix: save optimizer, scheduler, scaler and random states too.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "resume-incomplete"


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN for each resumable checkpoint that misses live state."""
    saves = [s for s in evidence.trace.saves if s.model]
    if not saves:
        yield NotChecked(RULE, "no torch.save of a model was seen")
        return
    meant = [s for s in saves if "position" in s.has or "optimizer" in s.has]
    for save in meant:
        missing = [part for part in save.live if part not in save.has]
        if missing and not any(set(s.live) <= set(s.has) for s in meant):
            yield Finding(
                RULE,
                Level.WARN,
                "the checkpoint cannot resume training exactly",
                f"it holds {', '.join(save.entries[:8]) or 'the model'}, but not the state of "
                f"{', '.join(missing)}",
                f"save and restore {', '.join(missing)} as well",
                save.place,
            )
            return
