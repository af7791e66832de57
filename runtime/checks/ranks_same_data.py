"""Different ranks read the same samples.

Every rank then does the same work, and the batch is not larger than on one.

Fix: a DistributedSampler, or a different slice for each rank.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import Trace

RULE = "ranks-same-data"

# A few samples can repeat in a small data set.
SHARE = 0.9


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL if nearly all of the first training samples of two ranks are the same."""
    ranks = [(r, _rows(r)) for r in evidence.ranks]
    known = [(r, rows) for r, rows in ranks if rows]
    if len(known) < 2:
        yield NotChecked(RULE, "fewer than two ranks with a training loader were seen")
        return
    (first, mine), (second, theirs) = known[0], known[1]
    shared = len(mine & theirs)
    if shared > SHARE * min(len(mine), len(theirs)):
        place = next((p.place for p in first.passes if p.backwards), None)
        yield Finding(
            RULE,
            Level.FAIL,
            "the ranks read the same data",
            f"{shared} of the first {len(mine)} training samples of rank {first.rank} were also "
            f"read by rank {second.rank}",
            "use a DistributedSampler, or give each rank its own part of the data",
            place,
        )


def _rows(trace: Trace) -> set[str]:
    passes = [p for p in trace.passes if p.backwards]
    return {row for p in passes[:1] for rows in p.rows for row in rows if row}
