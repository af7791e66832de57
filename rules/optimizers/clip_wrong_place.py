from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.blocks import neighbours
from trainlint.analysis.places import place
from trainlint.analysis.protocols.clipping import LostClip, foreign_clips, lost_clips
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import part_of_identifier

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class ClipWrongPlace(Rule):
    """Gradients are clipped where no optimizer step will use them.

    ## What it does
    Reports `clip_grad_norm_` and `clip_grad_value_` after the step that has already used the
    gradients, or after `zero_grad()` and before the backward pass, or of another network than the
    step that follows moves.

    ## Why is this bad?
    The update is computed from the gradients as they are at the step: clipping at another place
    changes nothing, and training is as unstable as without it.

    ## Example
    ```python
    import torch

    def train(model, criterion, loader):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    ```

    ## Use instead
    ```python
    import torch

    def train(model, criterion, loader):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    ```

    ## Fix safety
    The fix is safe: it moves the clipping before the step where both stand in one block.

    ## When not to use
    Clipping of weights (`p.data.clamp_`, as in WGAN) belongs after the step and is not reported.

    ## References
    - [torch.nn.utils.clip_grad_norm_](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html)
    """

    code = "TLO002"
    severity = Severity.ERROR
    scout = part_of_identifier("clip_grad")
    help = "clip between `backward()` and `step()`"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for run in file.runs:
            for found in lost_clips(run):
                if found.clip.file is file:
                    message = _message(found)
                    yield self.report(found.clip.node, message, repair=_repair(file, found))
            for found in foreign_clips(run):
                if found.clip.file is file:
                    step = place(found.step, file) if found.step else "a step"
                    yield self.report(
                        found.clip.node,
                        f"these gradients are cleared unused: {step} moves another network",
                    )


def _message(found: LostClip) -> str:
    if found.step is None:
        return "the gradients are cleared and `backward()` is yet to come: clipping has no effect"
    step = place(found.step, found.clip.file)
    return f"the step in {step} has already used these gradients: clipping has no effect"


def _repair(file: FileModel, found: LostClip) -> Repair | None:
    if found.step is None:
        return None
    both = neighbours(file, found.clip.node, found.step.node)
    if both is None or not all(isinstance(item, ast.Expr) for item in both):
        return None
    clip, step = both
    if clip.lineno < step.lineno:
        return None

    def move(editor: Editor) -> None:
        editor.move_before(clip, step)

    return Repair("Clip before the step", Applicability.SAFE, move)
