from __future__ import annotations

from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.protocols.schedules import (
    SchedulerStep,
    batches_of_one_step,
    steps_each_batch,
    steps_each_epoch,
)
from trainlint.analysis.schedule_units import counts_batches, counts_epochs, counts_every_batch
from trainlint.analysis.values import Instance, Object
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import identifier, pattern


class SchedulerCadenceMismatch(Rule):
    """A schedule that counts epochs steps each batch, or the other way round.

    ## What it does
    Compares the unit of the scheduler's arguments (`T_max=epochs`, `step_size=30`,
    `total_steps=epochs * len(loader)`) with the loop that calls `scheduler.step()`, and with the
    batches whose gradients are accumulated for one step.

    ## Why is this bad?
    A schedule in epochs that steps each batch is over within the first epoch: the learning rate
    collapses, or a cosine goes up and down again. One in batches that steps each epoch hardly
    moves.

    ## Example
    ```python
    import torch

    def train(model, criterion, train_loader, epochs):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=len(train_loader))
        for epoch in range(epochs):
            for x, y in train_loader:
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                optimizer.step()
            scheduler.step()
    ```

    ## Use instead
    ```python
    import torch

    def train(model, criterion, train_loader, epochs):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
        for epoch in range(epochs):
            for x, y in train_loader:
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                optimizer.step()
            scheduler.step()
    ```

    ## When not to use
    Fractional epochs (`step(epoch + i / len(loader))`), `LambdaLR`, and schedules whose arguments
    do not tell their unit are not reported.

    ## References
    - [CosineAnnealingLR](https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CosineAnnealingLR.html)
    - [OneCycleLR](https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.OneCycleLR.html)
    """

    code = "TLO005"
    severity = Severity.ERROR
    scout = identifier("step") & pattern(rb"\.step\s*\(")
    help = "let the schedule count what `scheduler.step()` counts: epochs or batches"

    def check(self, file: FileModel) -> Iterator[Report]:
        for step in file.scheduler_steps:
            message = _mismatch(step)
            if message is not None:
                yield self.report(step.call, message)


def _mismatch(step: SchedulerStep) -> str | None:
    if not step.takes_nothing or len(step.schedulers) != 1:
        return None
    scheduler = step.schedulers[0]
    home = _home(step, scheduler)
    if home is None:
        return None
    size = batches_of_one_step(step)
    if size is not None:
        argument = counts_every_batch(scheduler, home)
        once = f"this steps once in `{size}` batches"
        return argument and f"{once}, but `{argument}` of the schedule counts each batch"
    if steps_each_batch(step):
        argument = counts_epochs(scheduler, home)
        return argument and f"this steps each batch, but `{argument}` of the schedule counts epochs"
    if steps_each_epoch(step) is not None:
        argument = counts_batches(scheduler, home)
        return (
            argument and f"this steps each epoch, but `{argument}` of the schedule counts batches"
        )
    return None


def _home(step: SchedulerStep, scheduler: Object | Instance) -> FileModel | None:
    """The file that makes the scheduler."""
    for file in (step.event.file, step.run.file):
        if scheduler.node in file.index.parents:
            return file
    return step.run.file.project.holding(scheduler.node) if scheduler.node is not None else None
