"""Which loops and comprehensions run lap by lap: those over a few things that the code names."""

from __future__ import annotations

from trainlint.analysis.values import Constant, Group, Instance, Object, Unknown, Value

_MAX_LAPS = 4


def spelled_out(iterated: Value) -> list[Value] | None:
    """The elements of a short display of literals or objects that the code spells out."""
    if not isinstance(iterated, Group) or iterated.open:
        return None
    items: list[Value] = list(iterated.elements)
    if iterated.keys is not None:
        items = [Constant(key) for key in iterated.keys]
    if not 1 <= len(items) <= _MAX_LAPS:
        return None
    return items if all(map(_is_spelled, items)) else None


def _is_spelled(item: Value) -> bool:
    """A literal or object that the code names, or a tuple of such."""
    if isinstance(item, Group):
        return not item.open and item.keys is None and all(map(_is_spelled, item.elements))
    return (
        isinstance(item, (Object, Instance))
        or (isinstance(item, Constant) and isinstance(item.value, (str, bool)))
        or (isinstance(item, Unknown) and bool(item.hint))
    )
