from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.blocks import block_of
from trainlint.analysis.places import place
from trainlint.analysis.protocols.lost_gradients import LostGradients, lost_gradients
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import part_of_identifier

if TYPE_CHECKING:
    from trainlint.fixing import Editor

# Whoever reads `.grad` in between keeps a copy: gradient surgery, norms, privacy.
_READS_GRADIENTS = re.compile(r"\.grad\b|register_hook|grad_sample|get_grad|grad_vec")


class ZeroGradBetween(Rule):
    """`zero_grad()` stands between `backward()` and `step()`.

    ## What it does
    Reports a `zero_grad()` that, on every path, throws away the gradients of the last backward
    pass before the same optimizer steps.

    ## Why is this bad?
    The step sees no gradients at all. The loss is computed, logged and never falls; with weight
    decay or momentum the weights still move, for no reason.

    ## Example
    ```python
    import torch

    def train(model, loader, criterion):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.zero_grad()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch

    def train(model, loader, criterion):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    The fix is safe: it is offered only where the three statements stand directly one after the
    other, and puts `zero_grad()` first.

    ## References
    - [torch.optim.Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html)
    """

    code = "TLG003"
    severity = Severity.ERROR
    scout = part_of_identifier("zero_grad")
    help = "clear before `backward()`, or after `step()`"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for run in file.runs:
            for lost in lost_gradients(run):
                if lost.zero_grad.file is file and not _keeps_gradients(file, lost):
                    repair = _repair(file, lost)
                    yield self.report(lost.zero_grad.node, _message(lost), repair=repair)


def _keeps_gradients(file: FileModel, lost: LostGradients) -> bool:
    found = (lost.backward, lost.zero_grad, lost.step)
    lines = [getattr(event.node, "lineno", 0) for event in found]
    if all(event.file is file for event in found) and lines == sorted(lines):
        between = file.source.lines[lines[0] - 1 : lines[-1]]
        return bool(_READS_GRADIENTS.search("".join(between)))
    functions = ((event.file, event.file.index.enclosing_function(event.node)) for event in found)
    texts = (home.segment(node) if node else home.source.text for home, node in functions)
    return any(_READS_GRADIENTS.search(text) for text in texts)


def _message(lost: LostGradients) -> str:
    here = lost.zero_grad.file
    return (
        f"throws away the gradients of the backward pass ({place(lost.backward, here)}) before "
        f"the step ({place(lost.step, here)}) can use them"
    )


def _repair(file: FileModel, lost: LostGradients) -> Repair | None:
    found = (lost.backward, lost.zero_grad, lost.step)
    if any(event.file is not file for event in found):
        return None
    backward, zero_grad, step = (file.index.statement(event.node) for event in found)
    block = block_of(file, zero_grad)
    place = block.index(zero_grad)
    if block[max(place - 1, 0) : place + 2] != [backward, zero_grad, step]:
        return None
    if not all(isinstance(statement, ast.Expr) for statement in (backward, zero_grad, step)):
        return None

    def move(editor: Editor) -> None:
        editor.move_before(zero_grad, backward)

    return Repair("clear before the backward pass", Applicability.SAFE, move)
