from __future__ import annotations

from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.protocols.gradients import StaleGradients, stale_gradients
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import word


class ZeroGradMissing(Rule):
    """Gradients are never cleared between an optimizer's step and the next backward pass.

    ## What it does
    Follows every path of a training loop, through helpers and other files, and reports a
    `backward()` that adds to gradients which the optimizer has already used for a step.

    ## Why is this bad?
    `.grad` adds up over iterations, so every step uses the sum of all gradients since the start.
    Training looks alive but behaves like a growing momentum.

    ## Example
    ```python
    import torch

    def train(model, loader, criterion):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch

    def train(model, loader, criterion):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    The fix is unsafe: it clears the gradients at the start of each lap of the loop, which is wrong
    where gradients are meant to add up over several laps.

    ## References
    - [torch.optim.Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html)
    """

    code = "TLG001"
    severity = Severity.ERROR
    scout = word("backward") & word("step")
    help = "call `zero_grad()` on every path from one `step()` to the next `backward()`"

    def check(self, file: FileModel) -> Iterator[Report]:
        for run in file.runs:
            for stale in stale_gradients(run):
                if stale.backward.file is file and stale.cleared_outside is None:
                    yield self.report(stale.backward.node, _message(stale))


def _message(stale: StaleGradients) -> str:
    line = getattr(stale.step.node, "lineno", 0)
    return (
        f"nothing clears the gradients between `{stale.optimizer.hint or 'optimizer'}.step()` "
        f"(line {line}) and this backward pass: each step uses the sum of all gradients so far"
    )
