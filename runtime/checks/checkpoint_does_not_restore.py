"""A saved checkpoint does not hold the model that was saved.

Compared at ``torch.save`` with the live model: parameters missing, or some equal and some not.

Fix: see the named entries.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "checkpoint-does-not-restore"

# With fewer equal entries the checkpoint is another snapshot (EMA, best), not a damaged one.
EQUAL_SHARE = 0.5


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for trained parameters that are missing or differ while most are equal."""
    saves = [s for s in evidence.trace.saves if s.model]
    if not saves:
        yield NotChecked(RULE, "no torch.save of a model was seen")
        return
    for save in saves:
        params = {p.name for p in evidence.trace.params if p.optimizers}
        missing = [name for name in save.missing if name in params]
        different = save.different if save.equal >= EQUAL_SHARE * save.keys else []
        if missing or different:
            names = (missing or different)[:4]
            yield Finding(
                RULE,
                Level.FAIL,
                f"the checkpoint does not restore {save.model}",
                f"{len(missing)} trained parameters are missing and {len(different)} differ from "
                f"the live ones: {', '.join(names)}",
                "save model.state_dict() unchanged, and load it back with strict=True",
                save.place,
            )
            return
