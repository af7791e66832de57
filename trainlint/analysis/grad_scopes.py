"""Training steps inside scopes that switch autograd off."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis.definitions import FunctionDefinition
from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.interpreter.scopes import (
    GRAD_OFF,
    decorator_scopes,
    may_switch_gradients_on,
)
from trainlint.analysis.knowledge.tensors import NEW_DATA_FUNCTIONS
from trainlint.analysis.ownership import owners
from trainlint.analysis.protocols.gradients import optimizers
from trainlint.analysis.receivers import assigned_at
from trainlint.analysis.trace import (
    Branch,
    Event,
    EventKind,
    Jump,
    Scope,
    Step,
    Trace,
    around,
    events,
    parts,
    steps,
    test_of,
)
from trainlint.analysis.values import Instance, Tensor, elements

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

_SWITCHES = frozenset({"enable_grad", "set_grad_enabled", "maybe no_grad", "maybe enable_grad"})
_ASKS = re.compile(
    r"train|eval|valid|test|phase|mode|split|grad|optim|update|backward", re.IGNORECASE
)


def backwards_without_graph(run: Run) -> Iterator[tuple[Scope, Event]]:
    """Backward passes in a scope without gradients, which their forward passes are in as well."""
    for backward in events(run.trace, EventKind.BACKWARD):
        scope = switching_scope(around(run.trace, backward))
        if scope is None or scope.kind not in GRAD_OFF or _asks_first(scope.body, backward):
            continue
        if _is_computed_in(scope, backward) or (
            _has_no_graph(backward) and _runs_forward_without_graph(scope)
        ):
            yield scope, backward


def trained_without_graph(run: Run) -> Iterator[FunctionDefinition]:
    """Forward methods under a no-grad decorator, of networks that an optimizer steps."""
    if not any(True for _ in events(run.trace, EventKind.BACKWARD)):
        return
    for optimizer in optimizers(run):
        for owner in owners(optimizer):
            method = owner.definition.method("forward") if isinstance(owner, Instance) else None
            if method is not None and is_without_gradients(method):
                yield method


def is_without_gradients(function: FunctionDefinition) -> bool:
    """Whether the function's innermost decorator of that kind switches gradients off."""
    kinds = [kind for kind, _ in decorator_scopes(function) if kind != "autocast"]
    return bool(kinds) and kinds[-1] in GRAD_OFF


def switching_scope(way: list[Step]) -> Scope | None:
    """The innermost scope of those around a step that says something about gradients."""
    for step in reversed(way):
        if isinstance(step, Scope) and (step.kind in GRAD_OFF or step.kind in _SWITCHES):
            return step
    return None


def _runs_forward_without_graph(scope: Scope) -> bool:
    """Whether the forward passes inside are all without a graph, and nothing else can make one."""
    is_switched = any(
        isinstance(step, Scope) and step.kind in _SWITCHES for step in steps(scope.body)
    )
    return not is_switched and any(True for _ in events(scope.body, EventKind.FORWARD))


def _asks_first(body: Trace, backward: Event) -> bool:
    """Whether a test that the model cannot decide speaks of training before the backward pass."""
    for step in body:
        if isinstance(step, Branch) and _ASKS.search(test_of(step)):
            leaves = any(isinstance(item, Jump) for _, way in step.ways for item in way)
            if leaves or any(item is backward for item in steps([step])):
                return True
        if step is backward:
            return False
        for part in parts(step):
            if any(item is backward for item in steps(part)):
                return _asks_first(part, backward)
    return False


def _is_computed_in(scope: Scope, backward: Event) -> bool:
    """Whether the loss is a variable that is computed under the scope itself, wherever it is set.

    What the operands are does not matter then: the operation that yields the loss is not recorded.
    """
    node, file = backward.node, scope.file
    if backward.file is not file or not isinstance(node, ast.Call):
        return False
    loss = node.func.value if isinstance(node.func, ast.Attribute) else None
    extent = _extent(file, scope)
    if not isinstance(loss, ast.Name) or extent is None or not _holds(extent, loss):
        return False
    if file.index.enclosing_function(loss) is not file.index.enclosing_function(extent.body[0]):
        return False
    if may_switch_gradients_on(file.segment(extent)):
        return False
    bound = file.index.bindings(loss.id, file.index.scope(loss))
    computed = [_is_computed_at(file, item) for item in bound if _holds(extent, item)]
    return len(computed) == len(bound) and True in computed and False not in computed


def _is_computed_at(file: FileModel, bound: ast.AST) -> bool | None:
    """Whether an assignment computes a tensor; None for a literal, which has no ``backward``."""
    statement = file.index.parents.get(bound)
    if isinstance(statement, ast.AugAssign):
        return True
    value = assigned_at(file, bound)
    if isinstance(value, (ast.Constant, ast.List, ast.Tuple, ast.Dict)):
        return None
    return _is_operation(file, value)


def _extent(
    file: FileModel, scope: Scope
) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.With | None:
    """The function or ``with`` block that a scope covers."""
    current: ast.AST | None = scope.node
    while current is not None:
        if isinstance(current, (ast.FunctionDef, ast.AsyncFunctionDef, ast.With)):
            return current
        current = file.index.parents.get(current)
    return None


def _holds(extent: ast.stmt, node: ast.AST) -> bool:
    return any(item is node for item in ast.walk(extent))


def _is_operation(file: FileModel, value: ast.expr | None) -> bool:
    """Arithmetic, a mean or sum, or a function of torch other than one that makes new data."""
    if isinstance(value, ast.UnaryOp):
        return _is_operation(file, value.operand)
    if isinstance(value, ast.BinOp):
        return True
    if not isinstance(value, ast.Call):
        return False
    dotted = file.qualified(value.func) or ""
    head, _, last = dotted.rpartition(".")
    if head in ("torch", "torch.nn.functional"):
        makes_leaf = any(item.arg == "requires_grad" for item in value.keywords)
        return last.islower() and dotted not in NEW_DATA_FUNCTIONS and not makes_leaf
    return isinstance(value.func, ast.Attribute) and value.func.attr in ("mean", "sum")


def _has_no_graph(backward: Event) -> bool:
    found = list(elements(backward.target))
    return bool(found) and all(isinstance(item, Tensor) and not item.trains for item in found)
