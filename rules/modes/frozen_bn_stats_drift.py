from __future__ import annotations

import ast
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.freezing import Frozen, frozen_parts, has_batch_norm, is_kept_still, trains
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import identifier, pattern


class FrozenBnStatsDrift(Rule):
    """A frozen backbone's batch norm still updates its running statistics.

    ## What it does
    Reports parameters that are frozen with `requires_grad = False` in a network that surely holds
    batch norm, where the file puts the whole model in train mode and nothing puts the frozen part
    back in eval mode.

    ## Why is this bad?
    `requires_grad` concerns parameters. The running mean and variance are buffers: in train mode
    each forward pass moves them towards the new data, so that the "frozen" features change, and
    change differently with each batch size.

    ## Example
    ```python
    import torch
    from torch import nn
    from torchvision import models

    def train(loader, epochs):
        model = models.resnet18(weights="DEFAULT")
        for parameter in model.parameters():
            parameter.requires_grad = False
        model.fc = nn.Linear(512, 2)
        optimizer = torch.optim.Adam(model.fc.parameters())
        for _ in range(epochs):
            model.train()
            for x, y in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn
    from torchvision import models

    def train(loader, epochs):
        model = models.resnet18(weights="DEFAULT")
        for parameter in model.parameters():
            parameter.requires_grad = False
        model.fc = nn.Linear(512, 2)
        optimizer = torch.optim.Adam(model.fc.parameters())
        for _ in range(epochs):
            model.eval()
            model.fc.train()
            for x, y in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
    ```

    ## When not to use it
    Where the statistics are meant to follow the new data: adaptation to another domain.

    ## References
    - [torch.nn.BatchNorm2d](https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html)
    """

    code = "TLM007"
    severity = Severity.WARNING
    preview = True
    scout = identifier("train") & pattern(rb"\.\s*requires_grad(?:\s*=\s*|_\s*\(\s*)False\b")
    help = "call `eval()` on the frozen part after each `model.train()`, or override `train()`"

    def check(self, file: FileModel) -> Iterator[Report]:
        for frozen in frozen_parts(file):
            if (
                has_batch_norm(file, frozen.model)
                and trains(file, frozen.model)
                and not is_kept_still(file, frozen)
            ):
                yield self.report(frozen.module, _message(frozen))


def _message(frozen: Frozen) -> str:
    model = ast.unparse(frozen.model)
    return (
        f"freezes the parameters only: with `{model}.train()` the batch norm in "
        f"`{ast.unparse(frozen.module)}` goes on updating its running statistics"
    )
