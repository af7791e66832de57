from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.accumulation import Window, micro_batches, windows
from trainlint.analysis.blocks import block_of
from trainlint.analysis.places import place
from trainlint.analysis.trace import Event
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, part_in_any_case, part_of_identifier, text

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class ZeroGradBreaksAccumulation(Rule):
    """Gradients are cleared on every micro-batch, although the optimizer steps on each k-th only.

    ## What it does
    Reports a `zero_grad()` that runs on every lap of a loop whose `step()` stands under a condition
    such as `(i + 1) % k == 0`, with the backward pass on every lap.

    ## Why is this bad?
    The gradients of the first k-1 micro-batches are thrown away: k times the compute for the
    gradient of one micro-batch, and a learning rate that was chosen for k.

    ## Example
    ```python
    import torch

    def train(model, loader, criterion, k):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            loss = criterion(model(x), y) / k
            loss.backward()
            if (i + 1) % k == 0:
                optimizer.step()
    ```

    ## Use instead
    ```python
    import torch

    def train(model, loader, criterion, k):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y) / k
            loss.backward()
            if (i + 1) % k == 0:
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Fix safety
    The fix is unsafe: it moves the call behind the step, under the condition. The effective batch
    size, and so the right learning rate, change.

    ## When not to use it
    Inside `accelerator.accumulate(model)` both calls do nothing between the steps; such loops are
    not reported.

    ## References
    - [Gradient accumulation](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation)
    """

    code = "TLG002"
    severity = Severity.ERROR
    scout = (
        part_of_identifier("zero_grad")
        & identifier("step")
        & (text("%") | part_in_any_case("accum", "micro"))
    )
    help = "clear the gradients where the optimizer steps, under the same condition"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for window in windows(file):
            cleared = window.cleared_each_lap()
            if cleared is not None and window.is_accumulation:
                message = _message(f"line {window.branch.lineno}")
                yield self.report(cleared.node, message, repair=_repair(window, cleared))
        for batches in micro_batches(file):
            if batches.cleared is not None:
                yield self.report(batches.cleared.node, _message(place(batches.step, file)))


def _message(where: str) -> str:
    return f"clears what the micro-batches before the step ({where}) have added up"


def _repair(window: Window, cleared: Event) -> Repair | None:
    file = window.file
    clear, step = file.index.statement(cleared.node), file.index.statement(window.step.node)
    if not isinstance(clear, ast.Expr) or step not in block_of(file, window.branch.body[0]):
        return None
    if clear not in block_of(file, window.branch):
        return None

    def move(editor: Editor) -> None:
        editor.move_after(clear, window.branch.body[-1])

    return Repair("move it behind the step", Applicability.UNSAFE, move)
