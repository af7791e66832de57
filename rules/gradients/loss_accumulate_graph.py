from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.kept_losses import KeptLoss, kept_losses
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, text

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class LossAccumulateGraph(Rule):
    """A running total, or a list of losses, keeps every iteration's autograd graph.

    ## What it does
    Reports `total += loss` and `losses.append(loss)` in the loop that has called `loss.backward()`,
    where the loss is not detached and the total is never differentiated itself.

    ## Why is this bad?
    Each loss holds on to its graph. Memory grows with every iteration until it runs out, long after
    the line that is to blame.

    ## Example
    ```python
    def train(model, loader, criterion, optimizer):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss
        return total / len(loader)
    ```

    ## Use instead
    ```python
    def train(model, loader, criterion, optimizer):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        return total / len(loader)
    ```

    ## Fix safety
    The fix is safe: the loss has been differentiated already, so nobody can need its graph again.
    `detach()` does not wait for the device, as `item()` would.

    ## References
    - [My model reports "cuda runtime error: out of memory"](https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory)
    """

    code = "TLG009"
    severity = Severity.WARNING
    scout = (
        identifier("backward", "manual_backward")
        & text(".backward(", "manual_backward(")
        & text("+", "append", ".update(", ".add(")
    )
    help = "add `loss.detach()` or `loss.item()`"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for kept in kept_losses(file):
            message = f"`{kept.total}` keeps the autograd graph of every iteration"
            yield self.report(kept.value, message, repair=_repair(kept))


def _repair(kept: KeptLoss) -> Repair:
    names = [
        node
        for node in ast.walk(kept.value)
        if isinstance(node, ast.Name) and node.id in kept.losses
    ]

    def detach(editor: Editor) -> None:
        for name in names:
            editor.replace(name, f"{name.id}.detach()")

    return Repair("detach the loss", Applicability.SAFE, detach)
