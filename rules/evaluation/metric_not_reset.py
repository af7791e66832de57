from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.metric_objects import StaleMetric, stale_metrics
from trainlint.analysis.places import place
from trainlint.analysis.running_totals import totals_over_all_epochs
from trainlint.analysis.spelling import is_name_chain
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import in_block, part_in_any_case, text

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class MetricNotReset(Rule):
    """A running metric is not reset between epochs.

    ## What it does
    Reports metric objects of torchmetrics and torcheval, meters, and sums such as `correct` that
    are made before the loop over epochs, add up over the batches, and are reported in every epoch
    with all earlier epochs still in them.

    ## Why is this bad?
    The reported score averages over all epochs so far, so that it lags behind the model, or a sum
    grows without end; the best epoch is picked by it. `compute()` does not reset.

    ## Example
    ```python
    import torch
    from torchmetrics.classification import MulticlassAccuracy

    def fit(model, epochs, train_one_epoch, val_loader):
        accuracy = MulticlassAccuracy(num_classes=10)
        for epoch in range(epochs):
            train_one_epoch(model)
            model.eval()
            with torch.no_grad():
                for x, y in val_loader:
                    accuracy.update(model(x), y)
            print(epoch, accuracy.compute())
            model.train()
    ```

    ## Use instead
    ```python
    import torch
    from torchmetrics.classification import MulticlassAccuracy

    def fit(model, epochs, train_one_epoch, val_loader):
        accuracy = MulticlassAccuracy(num_classes=10)
        for epoch in range(epochs):
            train_one_epoch(model)
            model.eval()
            with torch.no_grad():
                for x, y in val_loader:
                    accuracy.update(model(x), y)
            print(epoch, accuracy.compute())
            accuracy.reset()
            model.train()
    ```

    ## Fix safety
    The fix is safe: it resets the metric object after `compute()`. Sums are not fixed.

    ## References
    - [torchmetrics: Metric](https://lightning.ai/docs/torchmetrics/stable/pages/implement.html)
    """

    code = "TLE003"
    severity = Severity.ERROR
    scout = text(".compute(") | (
        part_in_any_case("epoch")
        & text("+=", ".update(", ".add(")
        & in_block(
            rb"(?:for|while)\b(?:[^\n]*(?i:epoch)|[^\n]*[(\[\\]\s*\n)",
            rb"\+=|\.(?:update|add)\s*\(",
        )
    )
    help = "reset the metric at the start, or the end, of every epoch"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        if _may_use_metric_objects(file):
            for stale in stale_metrics(file):
                if stale.computed.file is file:
                    yield self.report(
                        stale.computed.node, _message(file, stale), repair=_repair(file, stale)
                    )
        for total in totals_over_all_epochs(file):
            yield self.report(
                total.read,
                f"`{total.name}` starts at line {total.start.lineno}, before the epochs: "
                "it adds up over all of them",
            )


def _may_use_metric_objects(file: FileModel) -> bool:
    return ".compute(" in file.source.text


def _message(file: FileModel, stale: StaleMetric) -> str:
    name, where = stale.metric.hint or "metric", place(stale.loop, file)
    return f"nothing resets `{name}` in the loop at {where}: it averages over all laps so far"


def _repair(file: FileModel, stale: StaleMetric) -> Repair | None:
    call = stale.computed.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    metric, statement = call.func.value, file.index.statement(call)
    if not is_name_chain(metric) or not isinstance(statement, (ast.Expr, ast.Assign)):
        return None

    def reset(editor: Editor) -> None:
        editor.insert_after(statement, f"{editor.source(metric)}.reset()")

    return Repair("reset the metric after it is computed", Applicability.SAFE, reset)
