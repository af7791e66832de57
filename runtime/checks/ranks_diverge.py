"""Parameters differ between ranks after a step.

Data-parallel ranks hold the same weights at all times. Compared by a double-precision sum of each
parameter on each rank.

Fix: train through the DDP wrapper, move the model before wrapping it, treat all ranks alike.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "ranks-diverge"

# Sums of identical weights are identical; other orders of summation are not involved.
TOLERANCE = 1e-9


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for ranks whose parameters differ, if they share a process group."""
    ranks = [r for r in evidence.ranks if r.fingerprints and r.group_initialised]
    if len(ranks) < 2:
        yield NotChecked(RULE, "fewer than two ranks with a process group were seen")
        return
    first = ranks[0]
    for other in ranks[1:]:
        pairs = zip(first.fingerprints, other.fingerprints, strict=False)
        for position, (mine, theirs) in enumerate(pairs):
            if len(mine) != len(theirs):
                continue
            bad = [
                i
                for i, (a, b) in enumerate(zip(mine, theirs, strict=True))
                if abs(a - b) > TOLERANCE * max(1.0, abs(a))
            ]
            if bad:
                # A script that averages by hand talks to the other ranks without a wrapper.
                wrapped = any(r.wrapped or r.collectives for r in ranks)
                names = ", ".join(first.params[i].name for i in bad[:4] if i < len(first.params))
                yield Finding(
                    RULE if wrapped else "ddp-not-wrapped",
                    Level.FAIL,
                    f"parameters differ between rank {first.rank} and rank {other.rank}",
                    f"{len(bad)} of {len(mine)} parameters differ at comparison {position}: "
                    + names
                    + ("" if wrapped else "; nothing was wrapped in DDP"),
                    "train through the DDP wrapper, move or cast the model before wrapping it, "
                    "and clip and step alike on all ranks",
                    first.optimizers[0].place if first.optimizers else None,
                )
                return
