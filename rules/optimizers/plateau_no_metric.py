from __future__ import annotations

import ast
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.protocols.schedules import SchedulerStep, plateaus
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import identifier, pattern


class PlateauNoMetric(Rule):
    """`ReduceLROnPlateau` steps without the metric that it watches.

    ## What it does
    Reports `scheduler.step()` without an argument where the scheduler is, or can be, a
    `ReduceLROnPlateau`.

    ## Why is this bad?
    It raises a TypeError: at the end of the first epoch, or on the day when somebody picks the
    plateau policy from the configuration.

    ## Example
    ```python
    import torch

    def fit(model, train_one_epoch, epochs):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=3)
        for epoch in range(epochs):
            train_one_epoch(model, optimizer)
            scheduler.step()
    ```

    ## Use instead
    ```python
    import torch

    def fit(model, train_one_epoch, validate, epochs):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=3)
        for epoch in range(epochs):
            train_one_epoch(model, optimizer)
            scheduler.step(validate(model))
    ```

    ## When not to use
    Code that asks for the kind of scheduler before it steps is not reported.

    ## References
    - [ReduceLROnPlateau](https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ReduceLROnPlateau.html)
    """

    code = "TLO006"
    severity = Severity.ERROR
    scout = identifier("step") & pattern(rb"\.step\s*\(")
    help = "pass the watched metric: `scheduler.step(val_loss)`"

    def check(self, file: FileModel) -> Iterator[Report]:
        for step in file.scheduler_steps:
            found = plateaus(step)
            if not found or not step.takes_nothing or _is_tried(file, step.call):
                continue
            is_certain = step.is_sure and len(found) == len(step.schedulers)
            if is_certain or not _asks_for_kind(file, step):
                yield self.report(step.call, _message(is_certain))


def _message(is_certain: bool) -> str:
    which = "the scheduler is" if is_certain else "the scheduler can be"
    return f"{which} a `ReduceLROnPlateau`, whose `step` needs the metric: this raises a TypeError"


def _is_tried(file: FileModel, call: ast.Call) -> bool:
    """Inside ``try``: the error is expected."""
    current: ast.AST | None = call
    while current is not None and not isinstance(current, (ast.FunctionDef, ast.Try)):
        current = file.index.parents.get(current)
    return isinstance(current, ast.Try)


def _asks_for_kind(file: FileModel, step: SchedulerStep) -> bool:
    """Whether the code around tells plateau schedulers from others, by type or by option."""
    function = file.index.enclosing_function(step.call)
    text = ast.unparse(function if function is not None else file.tree)
    if "isinstance" in text or "lateau" in text:
        return True
    current: ast.AST | None = step.call
    while current is not None and current is not function:
        if isinstance(current, ast.If) and not _is_about_presence(current.test):
            return True
        current = file.index.parents.get(current)
    return False


def _is_about_presence(test: ast.expr) -> bool:
    """``if scheduler:`` and ``if scheduler is not None:``."""
    if isinstance(test, ast.Compare):
        return isinstance(test.ops[0], ast.IsNot)
    return isinstance(test, (ast.Name, ast.Attribute))
