"""Attention or a recurrent layer without ``batch_first=True`` is fed batch-first data.

It then attends over the samples of the batch; all shapes fit, so nothing fails. Told by the
loader's batch size in the place of the sequence, or by samples that influence each other there.

Fix: set ``batch_first=True`` or transpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "mha-batch-first"

MIXED = 1e-3


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL if samples first influence each other inside such a layer, WARN for its shapes."""
    trace = evidence.trace
    extra = trace.extra
    sizes = {p.batch_size for p in trace.passes if p.backwards and (p.batch_size or 0) > 1}
    if not sizes and (extra is None or extra.mixing is None):
        yield NotChecked(RULE, "neither a loader's batch size nor an extra forward was seen")
        return
    mixing = extra is not None and extra.mixing is not None and extra.mixing > MIXED
    if extra is not None and mixing and extra.sequence_first_module:
        yield Finding(
            RULE,
            Level.FAIL,
            f"{extra.sequence_first_module} treats the batch as the sequence",
            f"{extra.mixing_module} has batch_first=False, and replacing one sample moved the "
            f"others' outputs by {extra.mixing:.2g} of their size",
            "set batch_first=True, or transpose to (sequence, batch, features)",
            extra.place,
        )
        return
    for module in trace.modules:
        shape = module.sequence_first
        if len(shape) == 3 and shape[0] in sizes and shape[1] not in sizes:
            yield Finding(
                RULE,
                Level.WARN,
                f"{module.cls} takes the batch for the sequence",
                f"{module.name} has batch_first=False and was given {tuple(shape)}, where "
                f"{shape[0]} is the loader's batch size",
                "set batch_first=True, or transpose to (sequence, batch, features)",
                module.place,
            )
            return
