from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.places import place
from trainlint.analysis.protocols.gradients import (
    StaleGradients,
    innermost_loop,
    stale_gradients,
)
from trainlint.analysis.trace import Event
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import part_of_identifier

if TYPE_CHECKING:
    from trainlint.analysis.interpreter.runs import Run
    from trainlint.fixing import Editor


class ZeroGradPerEpoch(Rule):
    """Gradients are cleared once an epoch, but the optimizer steps once a batch.

    ## What it does
    Reports a `zero_grad()` before or around the loop that repeats `backward()` and `step()`, when
    nothing clears the gradients inside that loop. One step an epoch, after a backward pass for each
    chunk, is accumulation and stays silent.

    ## Why is this bad?
    The second step of the epoch uses the first batch's gradients again, the third those of both,
    and so on: updates grow through the epoch and fall back at its end.

    ## Example
    ```python
    import torch

    def train(model, loader, criterion, epochs):
        optimizer = torch.optim.Adam(model.parameters())
        for epoch in range(epochs):
            optimizer.zero_grad()
            for x, y in loader:
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()
    ```

    ## Use instead
    ```python
    import torch

    def train(model, loader, criterion, epochs):
        optimizer = torch.optim.Adam(model.parameters())
        for epoch in range(epochs):
            for x, y in loader:
                optimizer.zero_grad()
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()
    ```

    ## Fix safety
    The fix is unsafe: it moves the call to the top of the batch loop, which is wrong where several
    batches are meant to share a step.

    ## References
    - [torch.optim.Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html)
    """

    code = "TLG004"
    severity = Severity.ERROR
    scout = part_of_identifier("zero_grad")
    help = "call `zero_grad()` in the same loop as `step()`"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for run in file.runs:
            for stale in stale_gradients(run):
                cleared = stale.cleared_outside
                if cleared is not None and cleared.file is file and _is_zero_grad(cleared):
                    repair = _repair(file, run, stale)
                    yield self.report(cleared.node, _message(file, stale), repair=repair)


def _is_zero_grad(cleared: Event) -> bool:
    return isinstance(cleared.node, ast.Call) and "zero_grad" in ast.unparse(cleared.node)


def _message(file: FileModel, stale: StaleGradients) -> str:
    step = place(stale.step, file)
    return (
        f"the gradients are cleared outside the loop that steps on each batch ({step}): "
        "within it they pile up"
    )


def _repair(file: FileModel, run: Run, stale: StaleGradients) -> Repair | None:
    loop = innermost_loop(run.trace, stale.step)
    assert stale.cleared_outside is not None
    assert loop is not None
    call, body = stale.cleared_outside.node, loop.node
    inside = {stale.backward.node, stale.step.node}
    if loop.file is not file or not isinstance(body, (ast.For, ast.While)):
        return None
    statement = file.index.statement(call)
    if not (isinstance(statement, ast.Expr) and isinstance(call, ast.Call)):
        return None
    if file.index.scope(statement) is not file.index.scope(body) or not inside <= set(
        ast.walk(body)
    ):
        return None

    def move(editor: Editor) -> None:
        editor.move_before(statement, body.body[0])

    return Repair("move it to the top of the batch loop", Applicability.UNSAFE, move)
