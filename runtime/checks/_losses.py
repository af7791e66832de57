"""Questions about recorded loss calls that several checks ask."""

from __future__ import annotations

from collections.abc import Callable

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.trace import LossCall, TensorFacts

NO_LOSS = "no call of this loss function was seen"
# Two batches with the same property: one can be a coincidence.
BATCHES = 2
# Rows of float32 probabilities sum to one within this.
ROW_SUM = 1e-3


def training_losses(evidence: Evidence, *functions: str) -> list[LossCall]:
    """Calls with gradients, of the given loss functions."""
    wanted = [c for c in evidence.trace.losses if c.function in functions]
    return [c for c in wanted if c.grad and (c.input.requires_grad or _target_grad(c))]


def _target_grad(call: LossCall) -> bool:
    return call.target is not None and call.target.requires_grad


def by_place(calls: list[LossCall]) -> list[list[LossCall]]:
    """The calls of each line."""
    groups: dict[str, list[LossCall]] = {}
    for call in calls:
        groups.setdefault(str(call.place), []).append(call)
    return list(groups.values())


def first_wrong(calls: list[LossCall], wrong: Callable[[LossCall], bool]) -> LossCall | None:
    """The first wrong call of a line at which it is no coincidence."""
    for group in by_place(calls):
        bad = [c for c in group if wrong(c)]
        if len(bad) >= BATCHES or len(bad) == len(group) == 1:
            return bad[0]
    return None


def is_probability(call: LossCall) -> bool:
    """Values in [0, 1] whose rows sum to one."""
    facts = call.input
    return (
        facts.low is not None
        and facts.high is not None
        and facts.row_sum_error is not None
        and facts.low >= 0
        and facts.high <= 1 + ROW_SUM
        and facts.row_sum_error < ROW_SUM
    )


def span(facts: TensorFacts | None) -> str:
    """The range of values, as evidence."""
    if facts is None or facts.low is None or facts.high is None:
        return "[not measured]"
    return f"[{facts.low:.3g}, {facts.high:.3g}]"
