from __future__ import annotations

from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.protocols.never_stepped import NeverStepped, never_stepped
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import part_of_identifier


class OptimizerStepMissing(Rule):
    """Gradients are computed and cleared, but the optimizer never steps.

    ## What it does
    Reports the backward pass of a loop that clears an optimizer's gradients on every lap, where
    nothing in sight steps that optimizer or changes the weights by hand.

    ## Why is this bad?
    Nothing is trained. The scheduler moves, the loss is logged, and the weights stay as they were
    made.

    ## Example
    ```python
    import torch

    def train(model, loader, criterion):
        optimizer = torch.optim.AdamW(model.parameters())
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
    ```

    ## Use instead
    ```python
    import torch

    def train(model, loader, criterion):
        optimizer = torch.optim.AdamW(model.parameters())
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## When not to use it
    Where another process or a hook that the rule cannot see uses the gradients.

    ## References
    - [torch.optim: taking an optimization step](https://docs.pytorch.org/docs/stable/optim.html#taking-an-optimization-step)
    """

    code = "TLG005"
    severity = Severity.ERROR
    scout = part_of_identifier("backward") & part_of_identifier("zero_grad")
    help = "call `optimizer.step()` after the backward pass"

    def check(self, file: FileModel) -> Iterator[Report]:
        for run in file.runs:
            for found in never_stepped(run):
                if found.backward.file is file and found.zero_grad.file is file:
                    yield self.report(found.backward.node, _message(found))


def _message(found: NeverStepped) -> str:
    name = found.optimizer.hint or "optimizer"
    return f"`{name}` is cleared for this backward pass, but nothing ever calls `{name}.step()`"
