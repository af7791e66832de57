"""What an operator is: one way to break a correct program, and the rule that has to find it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.bench.mutations.program import Mutation, Program

Breaks = Callable[[Program], Iterable[Mutation]]


@dataclass(frozen=True)
class Operator:
    """``finds`` is the one rule whose findings count.

    ``breaks`` yields a mutation for each place where its precondition holds: the precondition says
    that the program is wrong after it, because nothing else in sight does the job.
    """

    name: str
    finds: str
    breaks: Breaks


OPERATORS: list[Operator] = []


def operator(name: str, finds: str) -> Callable[[Breaks], Breaks]:
    """Enter a function into the list of operators."""

    def enter(breaks: Breaks) -> Breaks:
        OPERATORS.append(Operator(name, finds, breaks))
        return breaks

    return enter
