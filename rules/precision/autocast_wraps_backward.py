from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.mixed_precision import OFF, autocast_around, precision
from trainlint.analysis.trace import EventKind
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, part_of_identifier

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class AutocastWrapsBackward(Rule):
    """The backward pass runs inside the autocast region.

    ## What it does
    Reports `backward()` inside `with torch.autocast(...)`.

    ## Why is this bad?
    Each backward operation already runs in the precision of its forward one. Autocast around it is
    not recommended: custom backward functions are then cast again, and mixed dtypes can fail.

    ## Example
    ```python
    import torch

    def train(model, optimizer, criterion, loader):
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = criterion(model(x), y)
                loss.backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch

    def train(model, optimizer, criterion, loader):
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    The fix is safe: it moves `backward()` behind the region where it is the last statement.

    ## When not to use
    `autograd.grad` for a gradient penalty belongs to the forward pass and is not reported.

    ## References
    - [torch.autocast](https://docs.pytorch.org/docs/stable/amp.html#torch.autocast)
    """

    code = "TLP006"
    severity = Severity.INFO
    scout = identifier("autocast") & part_of_identifier("backward")
    help = "leave the autocast region before `backward()`"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for run in file.runs:
            for event, scope in autocast_around(run.trace, EventKind.BACKWARD):
                is_active = precision(scope) != OFF and scope.kind == "autocast"
                if event.file is file and is_active:
                    yield self.report(
                        event.node,
                        "this backward pass runs under autocast, which is for the forward pass",
                        repair=_repair(file, event.node),
                    )


def _repair(file: FileModel, backward: ast.AST) -> Repair | None:
    statement = file.index.statement(backward)
    region = file.index.parents[statement]
    if not isinstance(region, ast.With) or len(region.items) != 1 or len(region.body) < 2:
        return None
    if region.body[-1] is not statement or "autocast" not in ast.unparse(region.items[0]):
        return None

    def move(editor: Editor) -> None:
        editor.move_after(statement, region)

    return Repair("Run the backward pass after the region", Applicability.SAFE, move)
