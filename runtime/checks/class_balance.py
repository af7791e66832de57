"""The class balance in the batches that were seen.

Fix: class weights, resampling, or another metric.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "class-balance"

# Nearly every label is the same one.
DOMINANT = 0.98
LABELS = 64


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN for one class nearly everywhere, NOTE for a strong majority."""
    passes = [p for p in evidence.trace.passes if p.backwards and sum(p.labels.values()) >= LABELS]
    if not passes:
        yield NotChecked(RULE, "no class labels were seen in a training loader")
        return
    counts = passes[0].labels
    total, most = sum(counts.values()), max(counts.values())
    if most > DOMINANT * total:
        label = max(counts, key=lambda k: counts[k])
        yield Finding(
            RULE,
            Level.WARN,
            f"nearly all labels are class {label}",
            f"{most} of {total} labels in the first batches",
            "check the labels and the shuffling; weight or resample the classes",
            passes[0].place,
        )
