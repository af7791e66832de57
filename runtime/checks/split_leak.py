"""The evaluation loader reads training samples.

Two subsets of one dataset that share indices, or the training dataset itself used as the only
evaluation data.

Fix: split once, and evaluate on the other part.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import Place

RULE = "split-leak"

# A sample in a hundred can be a duplicate in the data.
SHARE = 0.01
# Of the evaluation samples that were looked at; duplicates in real data stay below.
REPEATED = 0.2


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for subsets that overlap in part, WARN for evaluation on the training data only."""
    trace = evidence.trace
    training = {p.dataset for p in trace.passes if p.backwards}
    held_out = [p for p in trace.passes if not p.backwards and p.batches and p.lap > 0]
    other = [p for p in trace.passes if not p.backwards and p.batches]
    if not training or not other:
        yield NotChecked(RULE, "no evaluation pass over a loader was seen")
        return
    for overlap in trace.overlaps:
        pair = {overlap.first, overlap.second}
        share = overlap.shared / max(1, overlap.size)
        if len(pair & training) == 1 and share > SHARE:
            place = next((p.place for p in other if p.dataset in pair), None)
            yield _finding(
                Level.FAIL,
                f"{overlap.shared} of {overlap.size} samples of the smaller subset are in both",
                place,
            )
            return
    seen = {r for p in trace.passes if p.backwards for rows in p.rows for r in rows if r}
    fresh = [r for p in other for rows in p.rows for r in rows if r]
    repeated = [r for r in fresh if r in seen]
    if held_out and all(p.dataset in training for p in held_out):
        yield _finding(
            Level.WARN, "the only evaluation passes read the training dataset", held_out[0].place
        )
    elif held_out and len(repeated) > REPEATED * len(fresh):
        yield _finding(
            Level.WARN,
            f"{len(repeated)} of {len(fresh)} evaluation samples had been "
            "trained on in the first steps",
            held_out[0].place,
        )


def _finding(level: Level, evidence: str, place: Place | None) -> Finding:
    return Finding(
        RULE,
        level,
        "evaluation reads training samples",
        evidence,
        "split once into disjoint parts, and evaluate on the part that is not trained on",
        place,
    )
