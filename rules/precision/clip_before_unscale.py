from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.blocks import block_of, follows_around
from trainlint.analysis.protocols.scaling import ScaledClip, scaled_clips
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import part_of_identifier

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class ClipBeforeUnscale(Rule):
    """Gradients are clipped while they are still multiplied by the loss scale.

    ## What it does
    Reports `clip_grad_norm_` and `clip_grad_value_` between the backward pass of a scaled loss and
    `scaler.step(optimizer)` where `scaler.unscale_(optimizer)` does not come first.

    ## Why is this bad?
    The loss scale is 65536 at the start, so every gradient is far above the threshold. Clipping
    then shrinks each of them, and after unscaling the update is thousands of times too small.

    ## Example
    ```python
    import torch
    from torch.nn.utils import clip_grad_norm_

    def train(model, optimizer, criterion, loader):
        scaler = torch.amp.GradScaler()
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
    ```

    ## Use instead
    ```python
    import torch
    from torch.nn.utils import clip_grad_norm_

    def train(model, optimizer, criterion, loader):
        scaler = torch.amp.GradScaler()
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
    ```

    ## Fix safety
    The fix is safe: `unscale_` is what has to happen before the clipping, and `scaler.step` knows
    that it happened. It is offered where the scaler's step stands below in the same block.

    ## When not to use
    A threshold that is multiplied by `scaler.get_scale()` is right, and not reported.

    ## References
    - [Gradient clipping with a GradScaler](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-clipping)
    """

    code = "TLP001"
    severity = Severity.ERROR
    scout = part_of_identifier("clip_grad")
    help = "call `scaler.unscale_(optimizer)` once before clipping"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for run in file.runs:
            for found in scaled_clips(run):
                if found.clip.file is file and not _minds_scale(found.clip.node):
                    yield self.report(
                        found.clip.node,
                        "these gradients are still multiplied by the loss scale: "
                        "clipping makes every update far too small",
                        repair=_repair(file, found),
                    )


def _minds_scale(clip: ast.AST) -> bool:
    """A threshold in scaled units, or one that is never reached: only the norm is wanted."""
    text = ast.unparse(clip)
    return "get_scale" in text or bool(re.search(r"\binf\b", text))


def _repair(file: FileModel, found: ScaledClip) -> Repair | None:
    step = found.step.node
    if not isinstance(step, ast.Call) or not isinstance(step.func, ast.Attribute) or not step.args:
        return None
    if not follows_around(file, found.clip.node, step) or _unscales(file, step):
        return None
    scaler, optimizer = step.func.value, step.args[0]
    statement = file.index.statement(found.clip.node)

    def unscale_first(editor: Editor) -> None:
        code = f"{editor.source(scaler)}.unscale_({editor.source(optimizer)})"
        editor.insert_before(statement, code)

    return Repair("Unscale the gradients before clipping", Applicability.SAFE, unscale_first)


def _unscales(file: FileModel, step: ast.AST) -> bool:
    """A second ``unscale_`` for one step is an error."""
    block = block_of(file, file.index.statement(step))
    return any("unscale_(" in ast.unparse(statement) for statement in block)
