"""Weight decay on norms, biases and embeddings.

Common and rarely harmful, so only noted; counted from the real parameter groups.

Fix: give them a group with ``weight_decay=0``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._words import named
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "weight-decay-on-norm-bias"

_KINDS = ("norm", "bias", "embedding")


def check(evidence: Evidence) -> Iterator[Result]:
    """NOTE with the number of such parameters in groups with weight decay."""
    trace = evidence.trace
    if not trace.optimizers:
        yield NotChecked(RULE, "the script made no torch optimizer")
        return
    for optimizer in trace.optimizers:
        decayed = [
            trace.params[i]
            for group in optimizer.groups
            if group.weight_decay
            for i in group.params
            if trace.params[i].kind in _KINDS
        ]
        if decayed:
            counts = [f"{sum(p.kind == k for p in decayed)} {k}" for k in _KINDS]
            yield Finding(
                RULE,
                Level.NOTE,
                f"{optimizer.name} decays norms, biases or embeddings",
                f"{', '.join(counts)} parameters are in groups with weight decay: {named(decayed)}",
                "put them into a group with weight_decay=0",
                optimizer.place,
            )
