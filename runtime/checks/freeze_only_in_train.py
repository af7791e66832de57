"""Parameters that the model's own ``train()`` freezes were trained, because nobody called it.

Asked of a copy: ``train()`` switches ``requires_grad`` off for weights that the optimizer moved.

Fix: call ``model.train()`` before the first step, or freeze in the constructor.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "freeze-only-in-train"

MOST_NAMED = 4


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN for weights that moved and that ``train()`` means to keep."""
    extra = evidence.trace.extra
    if extra is None or extra.frozen_by_train is None:
        yield NotChecked(RULE, "no copy of the model could be made")
        return
    moved = {p.name for p in evidence.trace.params if p.changed}
    names = [name for name in extra.frozen_by_train if name in moved]
    if names:
        yield Finding(
            RULE,
            Level.WARN,
            f"{len(names)} parameters are trained that {extra.model}.train() freezes",
            f"the optimizer moved {', '.join(names[:MOST_NAMED])}; train() on a copy switches "
            "their gradients off",
            f"call {extra.model}.train() before training, or freeze in the constructor",
            extra.place,
        )
