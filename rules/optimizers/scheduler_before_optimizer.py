from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.blocks import block_of
from trainlint.analysis.protocols.schedules import (
    SchedulerStep,
    optimizer_step_after,
)
from trainlint.analysis.trace import Call, Event, Loop, around
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, pattern

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class SchedulerBeforeOptimizer(Rule):
    """The learning-rate scheduler steps before the optimizer has.

    ## What it does
    Reports `scheduler.step()` that a loop reaches before the first `optimizer.step()`.

    ## Why is this bad?
    The first value of the schedule is skipped, and all later ones come one step too early. It was
    the documented order before PyTorch 1.1, and gives a warning since.

    ## Example
    ```python
    import torch

    def train(model, criterion, loader):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30)
        for epoch in range(90):
            scheduler.step()
            for x, y in loader:
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                optimizer.step()
    ```

    ## Use instead
    ```python
    import torch

    def train(model, criterion, loader):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30)
        for epoch in range(90):
            for x, y in loader:
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                optimizer.step()
            scheduler.step()
    ```

    ## Fix safety
    The fix is safe: it moves the scheduler's step behind the training of the same block.

    ## When not to use
    Schedulers of other libraries (timm), of the project's own that are no `LRScheduler`, and steps
    with an explicit epoch are not reported.

    ## References
    - [How to adjust learning rate](https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate)
    """

    code = "TLO004"
    severity = Severity.WARNING
    scout = identifier("step") & pattern(rb"\.step\s*\(")
    help = "step the scheduler after the optimizer"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for step in file.scheduler_steps:
            training = optimizer_step_after(step)
            if training is not None:
                yield self.report(
                    step.call,
                    "the scheduler steps before the optimizer has: "
                    "the first learning rate is never used",
                    repair=_repair(file, step, training),
                )


def _repair(file: FileModel, step: SchedulerStep, training: Event) -> Repair | None:
    statement = file.index.statement(step.call)
    block = block_of(file, statement)
    last = next(
        (item for node in _nodes(step, training) if (item := _member(file, node, block))), None
    )
    if last is None or not isinstance(statement, ast.Expr) or last is statement:
        return None

    def move(editor: Editor) -> None:
        editor.move_after(statement, last)

    return Repair("Step the scheduler after the optimizer", Applicability.SAFE, move)


def _nodes(step: SchedulerStep, training: Event) -> Iterator[ast.AST]:
    """The optimizer's step, and the calls and loops that it happens in."""
    yield training.node
    for outer in reversed(around(step.run.trace, training)):
        if isinstance(outer, (Call, Loop)):
            yield outer.node


def _member(file: FileModel, node: ast.AST, block: list[ast.stmt]) -> ast.stmt | None:
    """The statement of a block that holds a node."""
    current: ast.AST | None = node
    while current is not None and current not in block:
        current = file.index.parents.get(current)
    return current if isinstance(current, ast.stmt) else None
