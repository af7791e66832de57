from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.blocks import block_of
from trainlint.analysis.protocols.clipping import (
    PartialClip,
    clips_of_each_microbatch,
    partial_clips,
)
from trainlint.analysis.trace import Scope
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import part_of_identifier

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class ClipPerMicrobatch(Rule):
    """Gradients are clipped after every micro-batch of an accumulated step.

    ## What it does
    Reports `clip_grad_norm_` on each lap of a loop whose optimizer steps only on some, and in
    `accelerator.accumulate` without `if accelerator.sync_gradients:`.

    ## Why is this bad?
    The sum so far is clipped again and again: early micro-batches count less than late ones, and
    the result is not what clipping the whole gradient gives.

    ## Example
    ```python
    import torch

    def train(model, optimizer, criterion, loader, accumulation):
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y) / accumulation
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if (i + 1) % accumulation == 0 or i + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Use instead
    ```python
    import torch

    def train(model, optimizer, criterion, loader, accumulation):
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y) / accumulation
            loss.backward()
            if (i + 1) % accumulation == 0 or i + 1 == len(loader):
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Fix safety
    The fix is safe: it moves the clipping to the step, or asks accelerate whether one follows.

    ## When not to use
    Per-sample clipping as in DP-SGD clears the gradients in between, and is not reported.

    ## References
    - [Gradient accumulation with accelerate](https://huggingface.co/docs/accelerate/usage_guides/gradient_accumulation)
    """

    code = "TLO003"
    severity = Severity.WARNING
    scout = part_of_identifier("clip_grad")
    help = "clip once, directly before the optimizer's step"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for run in file.runs:
            for found in partial_clips(run):
                if found.clip.file is file:
                    line = getattr(found.step.node, "lineno", 0)
                    yield self.report(
                        found.clip.node,
                        "each micro-batch clips the sum so far, before the step of line "
                        f"{line} uses all of them",
                        repair=_move_to_step(file, found),
                    )
            for clip, scope in clips_of_each_microbatch(run):
                if clip.file is file:
                    yield self.report(
                        clip.node,
                        "each accumulated micro-batch clips the sum so far",
                        repair=_ask_accelerator(file, clip.node, scope),
                    )


def _move_to_step(file: FileModel, found: PartialClip) -> Repair | None:
    if found.step.node not in file.index.parents:
        return None
    clip, step = file.index.statement(found.clip.node), file.index.statement(found.step.node)
    condition = file.index.parents[step]
    if not isinstance(clip, ast.Expr) or not isinstance(condition, ast.If):
        return None
    if condition not in block_of(file, clip) or step not in condition.body:
        return None

    def move(editor: Editor) -> None:
        editor.move_before(clip, step)

    return Repair("Clip directly before the step", Applicability.SAFE, move)


def _ask_accelerator(file: FileModel, clip: ast.AST, scope: Scope) -> Repair | None:
    statement, call = file.index.statement(clip), scope.node
    if not isinstance(statement, ast.Expr) or not isinstance(call, ast.Call):
        return None
    if not isinstance(call.func, ast.Attribute) or call not in file.index.parents:
        return None
    accelerator = call.func.value

    def guard(editor: Editor) -> None:
        editor.wrap_statements([statement], f"if {editor.source(accelerator)}.sync_gradients:")

    return Repair("Clip only when gradients are complete", Applicability.SAFE, guard)
