from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.mixed_precision import BFLOAT, autocast_around, precision
from trainlint.analysis.protocols.scaling import scaler_of
from trainlint.analysis.trace import EventKind, events
from trainlint.analysis.values import Constant, Object, elements
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import part_of_identifier

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class Bf16WithGradscaler(Rule):
    """A GradScaler scales the loss of a model that computes in bfloat16.

    ## What it does
    Reports a `GradScaler` that is switched on while all autocast regions of the training are in
    `torch.bfloat16`.

    ## Why is this bad?
    bfloat16 has the range of float32, so there is nothing to rescue. The scaler costs a check of
    all gradients a step, and whoever reads gradients before `unscale_` reads scaled ones.

    ## Example
    ```python
    import torch

    def train(model, optimizer, criterion, loader):
        scaler = torch.amp.GradScaler("cuda")
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
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
    The fix is unsafe: it switches the scaler off with `enabled=False`, and steps that were skipped
    because of infinite gradients are no longer skipped.

    ## References
    - [torch.amp.GradScaler](https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling)
    """

    code = "TLP005"
    severity = Severity.INFO
    scout = part_of_identifier("Scaler")
    help = "drop the scaler, or make it with `enabled=dtype == torch.float16`"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for run in file.runs:
            for scaler in _needless_scalers(run):
                if scaler.node in file.index.parents:
                    yield self.report(
                        scaler.node,
                        "training runs in bfloat16, which needs no loss scaling",
                        repair=_repair(scaler),
                    )


def _needless_scalers(run: Run) -> Iterator[Object]:
    scopes = {scope for _, scope in autocast_around(run.trace, EventKind.FORWARD)}
    if not scopes or any(precision(scope) != BFLOAT for scope in scopes):
        return
    for event in events(run.trace, EventKind.BACKWARD):
        for scaler in elements(scaler_of(event)):
            if isinstance(scaler, Object) and _is_surely_on(scaler):
                yield scaler


def _is_surely_on(scaler: Object) -> bool:
    enabled = scaler.keywords.get("enabled", Constant(True))
    return isinstance(enabled, Constant) and enabled.value is True and "**" not in scaler.keywords


def _repair(scaler: Object) -> Repair:
    def switch_off(editor: Editor) -> None:
        editor.set_argument(scaler.node, "enabled", "False")

    return Repair("Switch the scaler off", Applicability.UNSAFE, switch_off)
