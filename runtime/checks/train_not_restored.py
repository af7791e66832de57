"""The model trains with dropout off and batch norm frozen.

After an evaluation pass has called ``eval()``, nothing called ``train()`` again: FAIL. A model that
is in evaluation mode from the first step on may be meant so, and is a warning. A model that is in
training mode itself, with layers in it that are not, has them frozen on purpose.

Fix: call ``model.train()`` at the start of each training epoch.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import RootCall

RULE = "train-not-restored"


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for a mode that changed between training steps, WARN for one that never was train."""
    calls = [c for c in evidence.training_calls() if _switchable(c)]
    if not evidence.training_calls():
        yield NotChecked(RULE, "no training call was seen")
        return
    for root in sorted({c.root for c in calls}):
        own = [c for c in calls if c.root == root]
        off = [c for c in own if not c.training and not c.dropout_on and not c.norm_on]
        if not off:
            continue
        before = [c for c in own if c not in off and c.step < off[0].step]
        if before or len(off) == len(own):
            yield Finding(
                RULE,
                Level.FAIL if before else Level.WARN,
                f"{root} trains in evaluation mode",
                f"dropout and batch norm were off at {len(off)} of {len(own)} training calls, "
                + (f"first after step {off[0].step}" if before else "from the start")
                + f" ({off[0].first_off})",
                f"call {root.lower()}.train() before the training loop of each epoch",
                off[0].place,
            )


def _switchable(call: RootCall) -> bool:
    return call.dropout_on + call.dropout_off + call.norm_on + call.norm_off > 0
