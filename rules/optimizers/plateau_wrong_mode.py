from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.knowledge.metrics import better_when
from trainlint.analysis.knowledge.training import looks_like_loss_function
from trainlint.analysis.protocols.schedules import SchedulerStep, plateaus
from trainlint.analysis.receivers import assigned_values, last_name
from trainlint.analysis.values import Constant, Object
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, pattern

if TYPE_CHECKING:
    from trainlint.fixing import Editor

_WANTED = {"higher": "max", "lower": "min"}


class PlateauWrongMode(Rule):
    """`ReduceLROnPlateau` watches a metric in the wrong direction.

    ## What it does
    Reports `scheduler.step(metric)` where the name of the metric says that higher is better and the
    mode is `min` (the default), or that lower is better and the mode is `max`.

    ## Why is this bad?
    Every improvement counts as a plateau: the learning rate falls while training goes well.

    ## Example
    ```python
    import torch

    def fit(model, train_one_epoch, evaluate, epochs):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=3)
        for epoch in range(epochs):
            train_one_epoch(model, optimizer)
            val_accuracy = evaluate(model)
            scheduler.step(val_accuracy)
    ```

    ## Use instead
    ```python
    import torch

    def fit(model, train_one_epoch, evaluate, epochs):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=3)
        for epoch in range(epochs):
            train_one_epoch(model, optimizer)
            val_accuracy = evaluate(model)
            scheduler.step(val_accuracy)
    ```

    ## Fix safety
    The fix is unsafe: it changes the mode, which is wrong if the metric's name misleads.

    ## References
    - [ReduceLROnPlateau](https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ReduceLROnPlateau.html)
    """

    code = "TLO007"
    severity = Severity.ERROR
    scout = identifier("step") & pattern(rb"\.step\s*\(")
    help = "use `mode='max'` for metrics that grow as the model improves, else `mode='min'`"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for step in file.scheduler_steps:
            found = plateaus(step)
            metric = _metric(step)
            if not found or len(found) < len(step.schedulers) or not step.is_sure or metric is None:
                continue
            direction = _direction(file, metric)
            modes = {_mode(scheduler) for scheduler in found}
            if direction is not None and modes == {
                _WANTED["lower" if direction == "higher" else "higher"]
            }:
                yield self.report(
                    step.call,
                    f"`{ast.unparse(metric)}` is better when {direction}, "
                    f"but the scheduler was made with mode '{modes.pop()}'",
                    repair=_repair(file, found[0], _WANTED[direction]),
                )


def _metric(step: SchedulerStep) -> ast.expr | None:
    if step.call.args:
        return step.call.args[0]
    given = (item.value for item in step.call.keywords if item.arg == "metrics")
    return next(given, None)


def _mode(scheduler: Object) -> str | None:
    given = scheduler.argument(1, "mode")
    if given is None:
        return None if "**" in scheduler.keywords else "min"
    return str(given.value) if isinstance(given, Constant) else None


def _direction(file: FileModel, metric: ast.expr) -> str | None:
    """Which way the metric improves by its name; None where it is not plain, or turned around."""
    assigned = list(assigned_values(file, metric))
    if any(_turns(expression) for expression in (metric, *assigned)):
        return None
    names = [
        node.value if isinstance(node, ast.Constant) else last_name(node)
        for node in ast.walk(metric)
        if isinstance(node, (ast.Name, ast.Attribute))
        or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    ]
    found = {better_when(str(name)) for name in names} - {None}
    if not found and isinstance(metric, ast.Name) and _adds_up_losses(file, metric):
        return "lower"
    return found.pop() if len(found) == 1 else None


def _adds_up_losses(file: FileModel, total: ast.Name) -> bool:
    """``v += criterion(model(x), y).item()``: a loss under whatever name."""
    scope = file.index.scope(total)
    added = [
        statement.value
        for statement in file.nodes(ast.AugAssign)
        if isinstance(statement.target, ast.Name)
        and statement.target.id == total.id
        and isinstance(statement.op, ast.Add)
        and file.index.scope(statement) is scope
    ]
    return bool(added) and all(map(_is_a_loss, added))


def _is_a_loss(value: ast.expr) -> bool:
    while isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div)):
        value = value.left
    if isinstance(value, ast.Call) and last_name(value.func) in ("item", "cpu", "detach", "float"):
        inner = value.func.value if isinstance(value.func, ast.Attribute) else value
        return inner is not value and _is_a_loss(inner)
    return isinstance(value, ast.Call) and looks_like_loss_function(last_name(value.func))


def _turns(expression: ast.expr) -> bool:
    """``-accuracy`` and ``1 - accuracy``."""
    return any(
        (
            isinstance(node, ast.UnaryOp)
            and isinstance(node.op, ast.USub)
            and not isinstance(node.operand, ast.Constant)
        )
        or (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, (ast.Sub, ast.Div))
            and isinstance(node.left, ast.Constant)
        )
        for node in ast.walk(expression)
    )


def _repair(file: FileModel, scheduler: Object, mode: str) -> Repair | None:
    made = scheduler.node
    if made not in file.index.parents:
        return None

    def change_mode(editor: Editor) -> None:
        if len(made.args) > 1:
            editor.replace(made.args[1], f'"{mode}"')
        else:
            editor.set_argument(made, "mode", f'"{mode}"')

    return Repair(f"Watch the metric with mode '{mode}'", Applicability.UNSAFE, change_mode)
