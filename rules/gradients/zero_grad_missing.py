from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.callers import callers
from trainlint.analysis.knowledge.training import looks_like_scaler
from trainlint.analysis.places import place
from trainlint.analysis.protocols.gradients import (
    StaleGradients,
    optimizers,
    stale_gradients,
    steps_without_clearing,
)
from trainlint.analysis.protocols.turns import take_turns
from trainlint.analysis.receivers import last_name
from trainlint.analysis.spelling import is_name_chain
from trainlint.analysis.trace import Call, around
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import part_of_identifier, pattern

if TYPE_CHECKING:
    from trainlint.analysis.definitions import FunctionDefinition
    from trainlint.analysis.index import Function
    from trainlint.analysis.interpreter.runs import Run
    from trainlint.fixing import Editor

_ACCUMULATES = re.compile(r"accum|if\b.*%|sync_gradients|micro_?(batch|step)", re.IGNORECASE)


class ZeroGradMissing(Rule):
    """Gradients are never cleared between an optimizer's step and the next backward pass.

    ## What it does
    Follows every path of a training loop, through helpers and other files, and reports a
    `backward()` that adds to gradients which the optimizer has already used for a step. A helper
    of another file that leaves clearing to its callers is reported with the caller that does not.

    ## Why is this bad?
    `.grad` adds up over iterations, so every step uses the sum of all gradients since the start.
    Training looks alive but behaves like a growing momentum.

    ## Example
    ```python
    import torch

    def train(model, loader, criterion):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch

    def train(model, loader, criterion):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    The fix is unsafe: it clears the gradients at the start of each lap of the loop, or before the
    backward pass of a framework's `training_step`, which is wrong where gradients are meant to add
    up over several of them.

    ## References
    - [torch.optim.Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html)
    """

    code = "TLG001"
    severity = Severity.ERROR
    scout = part_of_identifier("backward") & pattern(rb"backward(?<!def backward)\s*\(")
    help = "call `zero_grad()` on every path from one `step()` to the next `backward()`"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        if file.is_unit_test or _names_zero_grad_only(file):
            return
        for run in file.runs:
            for stale in stale_gradients(run):
                is_seen = stale.backward.file is file and stale.cleared_outside is None
                if is_seen and not take_turns(run, stale):
                    repair = _repair(file, run, stale)
                    yield self.report(stale.backward.node, _message(stale), repair=repair)
            for stale, caller in _stale_from_outside(file, run):
                yield self.report(stale.backward.node, f"called from {caller}, {_message(stale)}")


def _stale_from_outside(file: FileModel, run: Run) -> Iterator[tuple[StaleGradients, str]]:
    """A helper that leaves clearing to its callers, and the first of them that does not clear."""
    if run.root is None or not steps_without_clearing(run):
        return
    for caller in callers(run) or []:
        for stale in stale_gradients(caller):
            entry = _entry(caller, run.root, stale)
            is_seen = entry is not None and stale.cleared_outside is None
            if is_seen and not take_turns(caller, stale):
                assert entry is not None
                yield stale, place(entry, stale.backward.file)
                return


def _entry(caller: Run, helper: FunctionDefinition, stale: StaleGradients) -> Call | None:
    """The call of the helper in which the backward pass happens."""
    inside = around(caller.trace, stale.backward)
    return next(
        (step for step in inside if isinstance(step, Call) and step.function is helper), None
    )


def _names_zero_grad_only(file: FileModel) -> bool:
    """``optimizer.zero_grad`` without parentheses is reported as just that."""
    return any(
        isinstance(statement.value, ast.Attribute) and statement.value.attr == "zero_grad"
        for statement in file.nodes(ast.Expr)
    )


def _message(stale: StaleGradients) -> str:
    step = stale.before.node
    name = stale.optimizer.hint or "optimizer"
    if isinstance(step, ast.Call) and isinstance(step.func, ast.Attribute) and not step.args:
        name = ast.unparse(step.func.value)
    return (
        f"nothing clears the gradients between `{name}.step()` "
        f"({place(stale.before, stale.backward.file)}) and this backward pass: "
        "each step uses the sum of all gradients so far"
    )


def _repair(file: FileModel, run: Run, stale: StaleGradients) -> Repair | None:
    lap, step = _loop_around(file, stale) or _training_step(file, stale), stale.step.node
    if lap is None or len(optimizers(run)) > 1 or _ACCUMULATES.search(file.segment(lap)):
        return None
    assert isinstance(step, ast.Call)
    receiver = getattr(step.func, "value", step)
    by_scaler = bool(step.args) and looks_like_scaler(last_name(receiver))
    optimizer = step.args[0] if by_scaler else receiver
    backward = file.index.statement(stale.backward.node)
    is_loop = isinstance(lap, (ast.For, ast.While))
    if not is_name_chain(optimizer) or not (is_loop or _is_bound_before(file, optimizer, backward)):
        return None

    def clear(editor: Editor) -> None:
        code = f"{editor.source(optimizer)}.zero_grad()"
        if isinstance(lap, (ast.For, ast.While)):
            editor.insert_first(lap, code)
        else:
            editor.insert_before(backward, code)

    where = "in each lap of the loop" if is_loop else "before the backward pass"
    return Repair(f"clear the gradients {where}", Applicability.UNSAFE, clear)


def _loop_around(file: FileModel, stale: StaleGradients) -> ast.For | ast.While | None:
    """The innermost loop that holds both the backward pass and the step."""
    node: ast.AST | None = stale.backward.node
    while node is not None:
        if isinstance(node, (ast.For, ast.While)) and stale.step.node in set(ast.walk(node)):
            return node
        node = file.index.parents.get(node)
    return None


def _training_step(file: FileModel, stale: StaleGradients) -> Function | None:
    """The method that a framework repeats, if it holds both the backward pass and the step."""
    function = file.index.enclosing_function(stale.backward.node)
    is_both = function is not None and function is file.index.enclosing_function(stale.step.node)
    return function if is_both and function and function.name == "training_step" else None


def _is_bound_before(file: FileModel, name: ast.expr, statement: ast.stmt) -> bool:
    """Whether the variable that ``a`` or ``a.b.c`` starts with is set above a statement."""
    while isinstance(name, ast.Attribute):
        name = name.value
    assert isinstance(name, ast.Name)
    bound = file.index.bindings(name.id, file.index.scope(name))
    return all(getattr(item, "lineno", 0) < statement.lineno for item in bound)
