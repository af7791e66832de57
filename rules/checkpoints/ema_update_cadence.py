from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.averages import (
    average_updates,
    innermost_loop,
    is_under_some_condition,
    never_updated,
    optimizer_steps,
    waits_for_gradients,
)
from trainlint.analysis.blocks import neighbours, runs_before
from trainlint.analysis.receivers import last_name
from trainlint.analysis.swaps import AVERAGE
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, identifier_like, pattern

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class EmaUpdateCadence(Rule):
    """An average of the weights is updated at the wrong moment, or never.

    ## What it does
    Reports an update of an averaged model that comes between the backward pass and the optimizer's
    step, one that runs on each micro-batch while the optimizer steps only on some, and an average
    that the training function makes, reads, and never updates.

    ## Why is this bad?
    Before the step the weights are still the old ones. On each micro-batch the average moves
    several times for one step, so that it decays faster than asked for, by a factor that changes
    with the accumulation. Without updates what gets saved is the initial model.

    ## Example
    ```python
    def train(model, ema, loader, criterion, optimizer):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            ema.update(model)
            optimizer.step()
    ```

    ## Use instead
    ```python
    def train(model, ema, loader, criterion, optimizer):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            ema.update(model)
    ```

    ## Fix safety
    The fix is safe: it moves the update behind the step, where both stand in one block.

    ## When not to use it
    Where a momentum encoder is updated at the start of the forward pass, the rule is silent: that
    is after the step before.

    ## References
    - [torch.optim.swa_utils](https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema)
    """

    code = "TLC002"
    severity = Severity.ERROR
    scout = (
        identifier("backward", "step")
        & identifier_like(AVERAGE.encode() + rb"|MovingAverage|AveragedModel")
        & (pattern(rb"\.\s*step\s*\(") | identifier("backward"))
    )
    help = "update the average once after each step of the optimizer"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        steps = list(optimizer_steps(file))
        for update in average_updates(file):
            mine = [step for step in steps if _share_a_loop(file, step, update)]
            late = next((step for step in mine if _is_before_step(file, update, step, mine)), None)
            if late is not None:
                yield self.report(
                    update,
                    f"the average is updated before the step (line {late.lineno}): "
                    "it takes the weights from before",
                    repair=_repair(file, update, late),
                )
            elif (rare := _rarer_step(file, update, mine)) is not None:
                yield self.report(
                    update,
                    "the average is updated on each micro-batch, the weights only where "
                    f"line {rare.lineno} takes a step",
                )
        for made in never_updated(file):
            yield self.report(made, "nothing ever updates this average: it stays the initial model")


def _share_a_loop(file: FileModel, step: ast.Call, update: ast.Call) -> bool:
    return file.index.enclosing_function(step) is file.index.enclosing_function(
        update
    ) and innermost_loop(file, step) is innermost_loop(file, update)


def _is_before_step(
    file: FileModel, update: ast.Call, step: ast.Call, steps: list[ast.Call]
) -> bool:
    """Backward, perhaps of several micro-batches, update, step; and no other step came before."""
    loop = innermost_loop(file, step)
    return (
        runs_before(file, update, step)
        and not any(runs_before(file, other, update) for other in steps)
        and any(
            last_name(call) == "backward"
            and runs_before(file, call, update)
            and (innermost_loop(file, call) is loop or (loop and file.index.holds(loop, call)))
            for call in file.nodes(ast.Call)
        )
    )


def _rarer_step(file: FileModel, update: ast.Call, steps: list[ast.Call]) -> ast.Call | None:
    """A step that waits for several micro-batches, where the update does not."""
    for step in steps:
        waiting = waits_for_gradients(file, step)
        if waiting is None or waits_for_gradients(file, update) not in (None, waiting):
            continue
        is_inside = any(item is update for item in ast.walk(waiting))
        waits_inside = isinstance(waiting, ast.If)
        if is_inside and waits_inside:
            continue
        limit = waiting if is_inside else innermost_loop(file, update)
        if limit is not None and not is_under_some_condition(file, update, limit):
            return step
    return None


def _repair(file: FileModel, update: ast.Call, step: ast.Call) -> Repair | None:
    pair = neighbours(file, update, step)
    if pair is None or not isinstance(pair[0], ast.Expr):
        return None
    statement, other = pair

    def move(editor: Editor) -> None:
        editor.move_after(statement, other)

    return Repair("update the average after the step", Applicability.SAFE, move)
