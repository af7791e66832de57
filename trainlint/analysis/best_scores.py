"""Where the best epoch is picked: a score is compared with the best one so far."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainlint.analysis.blocks import block_of
from trainlint.analysis.knowledge.metrics import METRIC_WORDS, better_when
from trainlint.analysis.receivers import assigned_values, last_name
from trainlint.scout import identifier_like, part_in_any_case, pattern

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

_EXTREMES = ("min", "max", "lowest", "highest", "smallest", "largest", "minimum", "maximum")
_ANY_EXTREME = "|".join(_EXTREMES)
_EXTREME = re.compile(rf"(^|_)({_ANY_EXTREME})(_|$)", re.IGNORECASE)
_BEST_IN_TEXT = rf"(?i:best|(?<![a-z\d])(?:{_ANY_EXTREME})_|_(?:{_ANY_EXTREME})(?![a-z\d]))"
PICKS_BEST = (
    part_in_any_case("best")
    | part_in_any_case(*_EXTREMES)
    & identifier_like(
        rf"(?i)^(?=.*(?:^|_)(?:{_ANY_EXTREME})(?:_|$)).*(?:{'|'.join(METRIC_WORDS)})".encode()
    )
) & (
    pattern(rf"[<>](?<!->)\s*[^\n]*{_BEST_IN_TEXT}".encode())
    | pattern(
        rf"\n[^\n]*{_BEST_IN_TEXT}(?:[^\n]*\s*(?<!-)[<>]"
        rf"|[^\n=]*=\s*(?:\w+\.)?(?:max|min)\s*\()".encode()
    )
)
"""The scout's view of a pick: the best of something is compared, or is the ``max`` of two."""
_DIRECTION_IN_NAME = {
    "higher": re.compile(r"(^|_)(max|highest|largest|maximum)(_|$)", re.IGNORECASE),
    "lower": re.compile(r"(^|_)(min|lowest|smallest|minimum)(_|$)", re.IGNORECASE),
}
_IS_BETTER = re.compile(r"is_?best|improved|is_?better|new_?best|save_best", re.IGNORECASE)
_ASKS_DIRECTION = re.compile(
    r"(lower|higher|greater|smaller|bigger)_?(is)?_?better|better_?when|\bmode\b|maximi[sz]e|minimi[sz]e|direction",
    re.IGNORECASE,
)
_SAVES = re.compile(r"save|checkpoint|ckpt|state_dict|deepcopy|dump", re.IGNORECASE)
_PICKS = {ast.Lt: "lower", ast.LtE: "lower", ast.Gt: "higher", ast.GtE: "higher"}
_OPPOSITE = {"lower": "higher", "higher": "lower"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_TARGETS = (ast.Name, ast.Attribute)
_INFINITE = re.compile(
    r"(float\(['\"]\+?inf(inity)?['\"]\)|(np|numpy|math|torch)\.(inf|Inf|infty)|sys\.maxsize)$",
    re.I,
)
_LARGE = 1e4


@dataclass(frozen=True, eq=False)
class Pick:
    """``if score < best:`` keeps what is ``picks``: lower or higher.

    ``statement`` decides: an ``if``, or an assignment such as ``is_best = score < best``.
    """

    statement: ast.If | ast.Assign
    comparison: ast.Compare
    score: ast.expr
    best: ast.expr
    picks: str

    @property
    def updates(self) -> list[ast.stmt]:
        """The statements under the ``if`` that store a new best score."""
        if not isinstance(self.statement, ast.If):
            return []
        return [item for item in self.statement.body if is_stored(item, self.best)]

    @property
    def saves(self) -> bool:
        """Whether what is decided is to keep weights, directly under the ``if``.

        Not where the ``if`` counts epochs without improvement, or its other branch keeps the best.
        """
        if not isinstance(self.statement, ast.If):
            return True
        counts = any(_counts_up(item) for item in self.statement.body)
        if counts or any(is_stored(item, self.best) for item in self.statement.orelse):
            return False
        return any(
            isinstance(node, ast.Call) and _SAVES.search(last_name(node.func))
            for item in self.statement.body
            for node in ast.walk(item)
        )

    @property
    def is_alone(self) -> bool:
        """Whether the comparison alone decides: no ``or`` lets another test pass."""
        test = self.statement.test if isinstance(self.statement, ast.If) else self.statement.value
        return not any(
            isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) for node in ast.walk(test)
        )


def picks(file: FileModel) -> Iterator[Pick]:
    """All places of a file that compare a score with the best one to decide what to keep."""
    for branch in file.nodes(ast.If):
        if not _chooses_direction(file, branch):
            both = [pick for part in _parts(branch.test) if (pick := _pick(branch, part))]
            if len({pick.picks for pick in both}) == 1:
                yield from (pick for pick in both if pick.updates or pick.saves)
    for statement in file.nodes(ast.Assign):
        if len(statement.targets) == 1 and _IS_BETTER.search(last_name(statement.targets[0])):
            for comparison in _parts(statement.value):
                found = _pick(statement, comparison)
                if found is not None:
                    yield found


def _chooses_direction(file: FileModel, branch: ast.If) -> bool:
    """Whether the test, or one around it, asks which way is better: ``if mode == "min":``."""
    node: ast.AST | None = branch
    while node is not None and not isinstance(node, _FUNCTIONS):
        if isinstance(node, ast.If) and _ASKS_DIRECTION.search(ast.unparse(node.test)):
            return True
        node = file.index.parents.get(node)
    return False


def _parts(test: ast.expr) -> list[ast.Compare]:
    """The comparisons that a test is made of, none that is negated."""
    if isinstance(test, ast.BoolOp):
        return [found for part in test.values for found in _parts(part)]
    return [test] if isinstance(test, ast.Compare) and len(test.ops) == 1 else []


def _pick(statement: ast.If | ast.Assign, comparison: ast.Compare) -> Pick | None:
    picked = _PICKS.get(type(comparison.ops[0]))
    left, right = comparison.left, comparison.comparators[0]
    if picked is None or is_best(left) is is_best(right):
        return None
    if is_best(right):
        return Pick(statement, comparison, left, right, picked)
    return Pick(statement, comparison, right, left, _OPPOSITE[picked])


def is_best(node: ast.expr) -> bool:
    """Whether an expression is a variable for the best of something: ``best``, ``min_loss``."""
    if isinstance(node, ast.Subscript):
        return any(map(_sounds_best, [last_name(node.value), *_words(node.slice)]))
    return isinstance(node, _TARGETS) and _sounds_best(last_name(node))


def _sounds_best(name: str) -> bool:
    is_extreme = bool(_EXTREME.search(name)) and better_when(name) is not None
    return "best" in name.lower() or is_extreme


def direction(file: FileModel, score: ast.expr, best: ast.expr) -> str | None:
    """Which way a score improves, by its name and that of the best one; None where not plain.

    ``max_loss`` is the highest on purpose, and a negated score is turned around.
    """
    values = [value for node in (score, best) for value in assigned_values(file, node)]
    if any(_is_negated(value) for value in (score, best, *values)):
        return None
    found = {better_when(name) for name in (*_words(score), *_words(best))} - {None}
    if len(found) != 1 or "elbo" in ast.unparse(score).lower():
        return None
    way = found.pop()
    on_purpose = way is not None and _DIRECTION_IN_NAME[_OPPOSITE[way]].search(last_name(best))
    return None if on_purpose else way


def _words(node: ast.expr) -> list[str]:
    """The names in an expression, without those of the functions that it calls."""
    called = {id(item.func) for item in ast.walk(node) if isinstance(item, ast.Call)}
    found: list[str] = []
    for item in ast.walk(node):
        if isinstance(item, _TARGETS) and id(item) not in called:
            found.append(last_name(item))
        elif isinstance(item, ast.Constant) and isinstance(item.value, str):
            found.append(item.value)
    return found


def _is_negated(node: ast.expr) -> bool:
    return any(
        isinstance(item, ast.UnaryOp)
        and isinstance(item.op, ast.USub)
        and not isinstance(item.operand, ast.Constant)
        and not _INFINITE.search(ast.unparse(item.operand))
        for item in ast.walk(node)
    )


def _counts_up(statement: ast.stmt) -> bool:
    """``patience += 1`` and ``patience = patience + 1``."""
    if isinstance(statement, ast.AugAssign):
        return True
    value = statement.value if isinstance(statement, ast.Assign) else None
    return isinstance(value, ast.BinOp) and isinstance(value.right, ast.Constant)


def is_stored(statement: ast.AST, target: ast.expr) -> bool:
    """Whether a statement assigns to a variable, as a whole or in a tuple."""
    if isinstance(statement, ast.Assign):
        targets = list(statement.targets)
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    else:
        return False
    texts = {ast.unparse(target)}
    if isinstance(target, ast.Subscript):
        texts.add(ast.unparse(target.value))
    parts = [
        part for item in targets for part in (item.elts if isinstance(item, ast.Tuple) else [item])
    ]
    return any(ast.unparse(part) in texts for part in parts)


def stores(file: FileModel, pick: Pick) -> list[ast.stmt]:
    """All assignments to the best score: in the function, of an attribute in the class or file."""
    owner: ast.AST = file.tree
    if isinstance(pick.best, ast.Name):
        bound = file.index.bindings(pick.best.id, file.index.scope(pick.best))
        owner = file.index.scope(bound[0]) if bound else file.tree
    nodes: list[ast.stmt] = [
        *file.nodes(ast.Assign),
        *file.nodes(ast.AnnAssign),
        *file.nodes(ast.AugAssign),
    ]
    is_local = isinstance(pick.best, ast.Name)
    return [
        node
        for node in nodes
        if is_stored(node, pick.best) and (not is_local or file.index.scope(node) is owner)
    ]


def constant_value(node: ast.expr | None) -> float | None:
    """The number that an expression spells out, infinite ones included."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return None if isinstance(node.value, bool) else float(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = constant_value(node.operand)
        return -inner if inner is not None else None
    if node is not None and re.fullmatch(
        r"float\(['\"]-inf(inity)?['\"]\)", ast.unparse(node), re.I
    ):
        return -math.inf
    return math.inf if node is not None and _INFINITE.match(ast.unparse(node)) else None


def never_passes(initial: float, picked: str, way: str | None) -> bool:
    """Whether no score can be better than where the best one starts."""
    if picked == "lower":
        return initial == -math.inf or (initial <= 0 and way == "lower")
    return initial >= _LARGE and (initial == math.inf or way == "higher")


def is_in_body(file: FileModel, statement: ast.stmt, loop: ast.stmt) -> bool:
    """Whether a statement runs on every lap: it stands in the loop's own block."""
    return block_of(file, statement) is getattr(loop, "body", None)
