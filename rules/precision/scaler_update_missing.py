from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.blocks import block_of
from trainlint.analysis.protocols.scaling import steps_without_update
from trainlint.analysis.trace import Event
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, pattern

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class ScalerUpdateMissing(Rule):
    """A GradScaler steps in a loop and is never updated there.

    ## What it does
    Reports `scaler.step(optimizer)` that a loop repeats without any `scaler.update()` in the loop.

    ## Why is this bad?
    The second `step` raises "step() has already been called since the last update()", and where it
    does not (another optimizer each time), the loss scale never adapts to overflows.

    ## Example
    ```python
    import torch

    def train(model, optimizer, criterion, loader):
        scaler = torch.amp.GradScaler()
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
    ```

    ## Use instead
    ```python
    import torch

    def train(model, optimizer, criterion, loader):
        scaler = torch.amp.GradScaler()
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    ```

    ## Fix safety
    The fix is safe: it adds the call after the last `step` of the scaler in the block.

    ## References
    - [torch.amp.GradScaler](https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling)
    """

    code = "TLP003"
    severity = Severity.ERROR
    scout = identifier("step") & pattern(rb"\.step\s*\(")
    help = "call `scaler.update()` once after all steps of an iteration"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for run in file.runs:
            for event in steps_without_update(run):
                if event.file is file:
                    yield self.report(
                        event.node,
                        "the scaler steps again on the next lap without an `update()` in between",
                        repair=_repair(file, event),
                    )


def _repair(file: FileModel, event: Event) -> Repair | None:
    step = event.node
    if not isinstance(step, ast.Call) or not isinstance(step.func, ast.Attribute):
        return None
    scaler = step.func.value
    wanted = ast.dump(step.func)
    statements = [
        statement
        for statement in block_of(file, file.index.statement(step))
        if any(
            isinstance(node, ast.Call) and ast.dump(node.func) == wanted
            for node in ast.walk(statement)
        )
    ]

    def update_after(editor: Editor) -> None:
        editor.insert_after(statements[-1], f"{editor.source(scaler)}.update()")

    return Repair("Update the scaler after the step", Applicability.SAFE, update_after)
