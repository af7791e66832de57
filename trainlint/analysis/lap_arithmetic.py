"""On which laps of an accumulation loop a test holds, found by trying them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from trainlint.analysis.accumulation import Window, resolved

_SIZE = 4
_LAPS = range(8 * _SIZE)
_FAR = 1_000_000
_COMPARED: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_COMPUTED: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mod: operator.mod,
    ast.Mult: operator.mul,
}


class _CannotTellError(Exception):
    """A test depends on more than the lap's number."""


def laps_that_hold(window: Window, tests: list[tuple[ast.expr, bool]]) -> frozenset[int] | None:
    """The laps in mid-epoch on which all tests have their outcome; None where nobody can tell.

    The window is taken to be four micro-batches long, and the end of the loader far away.
    """
    try:
        return frozenset(
            lap
            for lap in _LAPS
            if all(bool(_value(window, test, lap)) is outcome for test, outcome in tests)
        )
    except _CannotTellError:
        return None


def _value(window: Window, node: ast.expr, lap: int) -> int:
    node = resolved(window.node, node)
    if ast.unparse(node) == ast.unparse(window.size):
        return _SIZE
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, bool)):
        return int(node.value)
    if isinstance(node, ast.Name) and node.id == window.index:
        return lap
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "len":
        return _FAR
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _value(window, node.operand, lap)
    if isinstance(node, ast.BoolOp):
        values = [bool(_value(window, part, lap)) for part in node.values]
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
        right = _value(window, node.right, lap)
        if right or not isinstance(node.op, ast.Mod):
            return _COMPUTED[type(node.op)](_value(window, node.left, lap), right)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
        compared = _COMPARED[type(node.ops[0])]
        return compared(_value(window, node.left, lap), _value(window, node.comparators[0], lap))
    raise _CannotTellError
