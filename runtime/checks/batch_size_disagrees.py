"""The tensors of one batch disagree about how many samples there are.

A collate function or processor that merges samples, so that labels and inputs no longer pair up.

Fix: check the collate function.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "batch-size-disagrees"

# Every batch that was looked at, and at least this many.
BATCHES = 3


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN if one tensor has as many rows as the batch and another has one."""
    passes = [p for p in evidence.trace.passes if len(p.leading) >= BATCHES]
    if not passes:
        yield NotChecked(RULE, "no loader delivered enough batches")
        return
    for one in passes:
        size = one.batch_size or 0
        odd = [sizes for sizes in one.leading if size > 2 and size in sizes and 1 in sizes]
        if len(odd) == len(one.leading):
            yield Finding(
                RULE,
                Level.WARN,
                "the tensors of a batch differ in their number of samples",
                f"batch size {size}, but leading dimensions are {odd[0]} in every batch",
                "check the collate function: each tensor should have one row a sample",
                one.place,
            )
            return
