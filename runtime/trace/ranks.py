"""What one rank asked of the others."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainlint.runtime.trace.source import Place


@dataclass
class CollectiveCall:
    """One call of a collective over all ranks: the size of its tensor, or rows by rank."""

    name: str
    place: Place | None
    step: int
    size: int | None = None
    sent: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
