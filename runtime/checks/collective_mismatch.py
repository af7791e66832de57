"""The ranks call different collectives, or with sizes that do not fit each other.

Sooner or later one of them waits for ever, is ended by the backend, or computes on rubbish.
Compared call by call, in order; calls that DDP makes by itself are not seen.

Fix: have every rank make the same calls, with sizes that all of them have agreed on.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import CollectiveCall

RULE = "collective-mismatch"

# Endings after which a call that only one rank made is what it waits for.
_STUCK = ("hung", "killed", "crashed")


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for the first call at which two ranks disagree."""
    ranks = [r for r in evidence.ranks if r.collectives]
    if len(ranks) < 2:
        yield NotChecked(RULE, "fewer than two ranks that call collectives were seen")
        return
    for one, other in combinations(ranks, 2):
        pairs = zip(one.collectives, other.collectives, strict=False)
        for position, (mine, theirs) in enumerate(pairs):
            problem = _disagree(mine, theirs, one.rank, other.rank)
            if problem:
                yield _finding(problem, position, mine)
                return
        shared = min(len(one.collectives), len(other.collectives))
        longer = max(one, other, key=lambda r: len(r.collectives))
        if len(longer.collectives) > shared and longer.ending.kind in _STUCK:
            call = longer.collectives[shared]
            problem = f"only rank {longer.rank} calls {call.name}, and it never returned"
            yield _finding(problem, shared, call)
            return


def _disagree(mine: CollectiveCall, theirs: CollectiveCall, one: int, other: int) -> str:
    if mine.name != theirs.name:
        return f"rank {one} calls {mine.name} where rank {other} calls {theirs.name}"
    if mine.size is not None and theirs.size is not None and mine.size != theirs.size:
        return f"{mine.name} of {mine.size} elements on rank {one}, of {theirs.size} on {other}"
    if mine.sent and theirs.sent:
        for sender, receiver, frm, to in ((mine, theirs, one, other), (theirs, mine, other, one)):
            sent, expected = sender.sent[to], receiver.received[frm]
            if sent != expected:
                return f"rank {frm} sends {sent} rows to rank {to}, which expects {expected}"
    return ""


def _finding(problem: str, position: int, call: CollectiveCall) -> Finding:
    return Finding(
        RULE,
        Level.FAIL,
        "the ranks disagree about a collective",
        f"call {position}, step {call.step}: {problem}",
        "make the same calls on every rank, with sizes that were exchanged first",
        call.place,
    )
