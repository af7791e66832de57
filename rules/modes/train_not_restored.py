from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.evaluations import SWITCHES_TO_EVALUATION, contexts
from trainlint.analysis.places import place
from trainlint.analysis.protocols.modes import TrainedInEval, trained_in_eval
from trainlint.analysis.spelling import is_name_chain
from trainlint.analysis.structure import is_mode_sensitive
from trainlint.analysis.trace import EventKind, events
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule

if TYPE_CHECKING:
    from trainlint.analysis.interpreter.runs import Run
    from trainlint.fixing import Editor


class TrainNotRestored(Rule):
    """Training goes on in eval mode after an evaluation.

    ## What it does
    Reports the `model.eval()` of an evaluation that a loop repeats, when on some path the next
    training steps of the model follow without a `model.train()`.

    ## Why is this bad?
    From the first evaluation on the model trains without dropout and with frozen batch norm
    statistics. Nothing fails; the model overfits earlier, or its normalisation never adapts.

    ## Example
    ```python
    import torch

    def evaluate(model, val_loader):
        model.eval()
        with torch.no_grad():
            return sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)

    def fit(model, optimizer, criterion, train_loader, val_loader):
        model.train()
        for epoch in range(10):
            for x, y in train_loader:
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                optimizer.step()
            print(epoch, evaluate(model, val_loader))
    ```

    ## Use instead
    ```python
    import torch

    def evaluate(model, val_loader):
        model.eval()
        with torch.no_grad():
            return sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)

    def fit(model, optimizer, criterion, train_loader, val_loader):
        for epoch in range(10):
            model.train()
            for x, y in train_loader:
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                optimizer.step()
            print(epoch, evaluate(model, val_loader))
    ```

    ## Fix safety
    The fix is unsafe: it adds `model.train()` at the top of the loop that trains and evaluates,
    which also wakes parts that were put in eval mode on purpose.

    ## References
    - [torch.nn.Module.train](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.train)
    """

    code = "TLM002"
    severity = Severity.ERROR
    scout = SWITCHES_TO_EVALUATION
    help = "call `model.train()` at the top of every epoch, or after each evaluation"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        is_in_sight = self.scout.suspects(file.source.glance)
        if not is_in_sight or file.is_unit_test:
            return
        for run, _ in contexts(file, lambda run: _switches_to_eval(run, file)):
            for found in trained_in_eval(run):
                if found.switch.file is file and is_mode_sensitive(found.model) is not False:
                    yield self.report(
                        found.switch.node, _message(found), repair=_repair(file, found)
                    )


def _switches_to_eval(run: Run, file: FileModel) -> bool:
    return any(event.file is file for event in events(run.trace, EventKind.EVAL))


def _message(found: TrainedInEval) -> str:
    name, where = found.model.hint or "model", place(found.step, found.switch.file)
    return f"`{name}` stays in eval mode after this, and so trains at {where}"


def _repair(file: FileModel, found: TrainedInEval) -> Repair | None:
    switch, loop = found.switch.node, found.loop.node
    is_method = isinstance(switch, ast.Call) and isinstance(switch.func, ast.Attribute)
    if found.loop.file is not file or not is_method or not isinstance(loop, (ast.For, ast.While)):
        return None
    assert isinstance(switch, ast.Call)
    assert isinstance(switch.func, ast.Attribute)
    model = switch.func.value
    wanted = ast.dump(model)
    named = any(
        ast.dump(item) == wanted for item in ast.walk(loop) if isinstance(item, type(model))
    )
    if not is_name_chain(model) or not named:
        return None

    def add_train(editor: Editor) -> None:
        editor.insert_first(loop, f"{editor.source(model)}.train()")

    return Repair("switch to train mode at the top of the loop", Applicability.UNSAFE, add_train)
