from __future__ import annotations

from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.evaluations import EVALUATES
from trainlint.analysis.last_batches import last_batch_scores
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import identifier


class LastBatchMetric(Rule):
    """The score of an evaluation is that of its last batch.

    ## What it does
    Reports a loss or metric that a loop over validation or test batches overwrites on each lap,
    without adding it to anything, and that is read after the loop. Also a list of scores that a
    loop over batches empties on each lap, and that is averaged after the loop.

    ## Why is this bad?
    The last batch is often the smallest one. Its score is noise, and the best epoch is picked by
    it.

    ## Example
    ```python
    import torch

    @torch.no_grad()
    def validate(model, val_loader, criterion):
        model.eval()
        for x, y in val_loader:
            loss = criterion(model(x), y)
        print("validation loss", loss.item())
    ```

    ## Use instead
    ```python
    import torch

    @torch.no_grad()
    def validate(model, val_loader, criterion):
        model.eval()
        total = 0.0
        for x, y in val_loader:
            total += criterion(model(x), y).item() * len(y)
        print("validation loss", total / len(val_loader.dataset))
    ```

    ## When not to use it
    Where the loader holds one batch only.

    ## References
    - [PyTorch: optimizing model parameters](https://docs.pytorch.org/tutorials/beginner/basics/optimization_tutorial.html)
    """

    code = "TLE004"
    severity = Severity.ERROR
    scout = identifier("torch") & EVALUATES
    help = "add up the score over all batches, weighted by their size"

    def check(self, file: FileModel) -> Iterator[Report]:
        if file.is_unit_test or not self.scout.suspects(file.source.glance):
            return
        for found in last_batch_scores(file):
            yield self.report(
                found.read,
                f"`{found.name}` is that of the last batch only: "
                f"the loop at line {found.loop.lineno} overwrites it",
            )
