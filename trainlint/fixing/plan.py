"""What one repair wants changed, and which places it touches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from trainlint.fixing.document import Block, Span, Statement

if TYPE_CHECKING:
    import libcst as cst

    from trainlint.fixing.arguments import ArgumentList
    from trainlint.fixing.body import Body


class Rebuilt(Protocol):
    """Gives the edited version of any node of the original tree."""

    def __call__(self, original: cst.CSTNode) -> cst.CSTNode: ...


@dataclass(frozen=True, slots=True)
class NodeChange:
    """Another node in the place of ``target``; receives it with the edits inside it made."""

    target: cst.CSTNode
    edit: Callable[[cst.CSTNode, Rebuilt], cst.CSTNode]


@dataclass(frozen=True, slots=True)
class ArgumentsChange:
    """Arguments of a call added, removed or exchanged."""

    target: cst.Call
    edit: Callable[[ArgumentList], None]


@dataclass(frozen=True, slots=True)
class BodyChange:
    """Statements of a block added, removed or moved; ``statements`` are those it speaks of."""

    target: Block
    edit: Callable[[Body, Rebuilt], None]
    statements: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class TextChange:
    """A stretch of the text replaced."""

    span: Span
    code: str


Change = NodeChange | ArgumentsChange | BodyChange | TextChange


@dataclass(slots=True)
class Plan:
    """The changes of one repair, in order, and the places they touch.

    Two repairs conflict if they replace text in common, if they insert at the same point, or if
    one inserts inside what the other replaces. ``statements`` are spans that are moved as a whole:
    inserting at their very edge conflicts too.
    """

    changes: list[Change] = field(default_factory=list)
    replaced: list[Span] = field(default_factory=list)
    statements: list[Span] = field(default_factory=list)
    points: list[int] = field(default_factory=list)

    def conflicts_with(self, others: Iterable[Plan]) -> bool:
        """Whether any of ``others`` cannot be carried out together with this plan."""
        return any(
            self.edits_text != other.edits_text or _touches(self, other) or _touches(other, self)
            for other in others
        )

    @property
    def edits_text(self) -> bool:
        """Whether it changes the text directly, which excludes every other kind of change."""
        return any(isinstance(change, TextChange) for change in self.changes)


def _touches(plan: Plan, other: Plan) -> bool:
    pieces = plan.replaced + plan.statements
    other_pieces = other.replaced + other.statements
    return (
        any(a[0] < b[1] and b[0] < a[1] for a in pieces for b in other_pieces)
        or any(start < point < end for start, end in plan.replaced for point in other.points)
        or any(start <= point <= end for start, end in plan.statements for point in other.points)
        or any(point in other.points for point in plan.points)
    )
