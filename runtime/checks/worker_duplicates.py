"""Different DataLoader workers deliver identical samples.

A generator seeded in ``__init__`` is copied into every worker, or an IterableDataset is not split
over the workers.

Fix: seed from ``torch.initial_seed()`` in each worker; split by ``get_worker_info()``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "worker-duplicates"

# A repeated sample can be chance; a whole batch of them is not.
SHARE = 0.9
LEAST_ROWS = 2


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL if batches of different workers hold the same samples."""
    passes = [p for p in evidence.trace.passes if p.workers > 1 and len(p.rows) > 1]
    if not passes:
        yield NotChecked(RULE, "no loader with two or more workers delivered two batches")
        return
    for one in passes:
        for position, rows in enumerate(one.rows[1:], start=1):
            kept = [r for r in rows if r]
            earlier = {
                r
                for other in one.rows[max(0, position - one.workers + 1) : position]
                for r in other
            }
            same = [r for r in kept if r in earlier]
            if len(set(kept)) >= LEAST_ROWS and len(same) >= SHARE * len(kept):
                yield Finding(
                    RULE,
                    Level.FAIL,
                    "different workers deliver the same samples",
                    f"batch {position} repeats {len(same)} of {len(kept)} samples that another "
                    f"of the {one.workers} workers had delivered",
                    "seed each worker differently (worker_init_fn), or split an IterableDataset "
                    "by get_worker_info()",
                    one.place,
                )
                return
