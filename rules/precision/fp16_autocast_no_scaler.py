from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.protocols.half_precision import unscaled_half_precision
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import identifier

_SCALES_ELSEWHERE = re.compile(
    r"[Ss]caler|accelerat|deepspeed|[Ff]abric|set_autocast|scale_loss|loss_scale"
)


class Fp16AutocastNoScaler(Rule):
    """Training in float16 autocast without a GradScaler.

    ## What it does
    Reports an autocast region in float16 (the default on CUDA) whose loss is differentiated and
    followed by an optimizer step, where no scaler is in sight.

    ## Why is this bad?
    Gradients below 6e-8 become zero in float16. Layers with small gradients stop learning, and
    nothing tells.

    ## Example
    ```python
    import torch

    def train(model, optimizer, criterion, loader):
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda"):
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

    ## When not to use
    Files that speak of a scaler, of accelerate, DeepSpeed or Fabric are not reported.

    ## References
    - [Automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
    """

    code = "TLP004"
    severity = Severity.WARNING
    scout = identifier("autocast")
    help = "scale the loss with `torch.amp.GradScaler`, or use `dtype=torch.bfloat16`"

    def check(self, file: FileModel) -> Iterator[Report]:
        for run in file.runs:
            for scope in unscaled_half_precision(run):
                if scope.node in file.index.parents and not _scales_elsewhere(run.file):
                    yield self.report(
                        scope.node,
                        "this trains in float16 without a scaler: small gradients become zero",
                    )


def _scales_elsewhere(file: FileModel) -> bool:
    """Whether the code, comments aside, speaks of anything that scales losses."""
    return bool(_SCALES_ELSEWHERE.search(ast.unparse(file.tree)))
