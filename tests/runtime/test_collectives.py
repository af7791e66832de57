"""Collectives of several ranks are compared call by call."""

from __future__ import annotations

from traces import HERE, findings, healthy

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Level
from trainlint.runtime.trace import CollectiveCall, Trace

RULE = "collective-mismatch"


def _rank(rank: int, *calls: CollectiveCall) -> Trace:
    trace = healthy()
    trace.rank, trace.world, trace.collectives = rank, 2, list(calls)
    return trace


def _reduce(size: int) -> CollectiveCall:
    return CollectiveCall("all_reduce", HERE, 0, size)


def _exchange(sent: list[int], received: list[int]) -> CollectiveCall:
    return CollectiveCall("all_to_all_single", HERE, 0, None, sent, received)


def _said(*ranks: Trace) -> list[str]:
    found = findings(Evidence("train.py", observe=ranks[0], ranks=list(ranks)))
    assert all(f.level is Level.FAIL for f in found if f.rule == RULE)
    return [f.evidence for f in found if f.rule == RULE]


def test_the_same_calls_are_fine() -> None:
    calls = (_reduce(64), _exchange([3, 5], [3, 2]), _reduce(8))
    other = (_reduce(64), _exchange([2, 7], [5, 7]), _reduce(8))
    assert _said(_rank(0, *calls), _rank(1, *other)) == []


def test_other_sizes() -> None:
    (said,) = _said(_rank(0, _reduce(64)), _rank(1, _reduce(65)))
    assert "64 elements on rank 0, of 65 on 1" in said


def test_rows_that_are_sent_but_not_expected() -> None:
    (said,) = _said(_rank(0, _exchange([3, 5], [3, 2])), _rank(1, _exchange([2, 7], [4, 7])))
    assert "rank 0 sends 5 rows to rank 1, which expects 4" in said


def test_another_collective() -> None:
    barrier = CollectiveCall("barrier", HERE, 0)
    (said,) = _said(_rank(0, _reduce(64)), _rank(1, barrier))
    assert "rank 0 calls all_reduce where rank 1 calls barrier" in said


def test_a_call_that_only_one_rank_makes_and_waits_in() -> None:
    waiting = _rank(0, _reduce(64), _reduce(64))
    assert _said(waiting, _rank(1, _reduce(64))) == []
    waiting.ending.kind = "hung"
    (said,) = _said(waiting, _rank(1, _reduce(64)))
    assert "only rank 0 calls all_reduce" in said
