from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.blocks import block_of, neighbours
from trainlint.analysis.places import place
from trainlint.analysis.protocols.scaling import ScaledStep, scaled_steps
from trainlint.analysis.spelling import is_name_chain
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import part_of_identifier, pattern

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class ScalerScaleWithoutStep(Rule):
    """The loss is scaled, but the optimizer steps by itself on the scaled gradients.

    ## What it does
    Reports `optimizer.step()` after `scaler.scale(loss).backward()` with neither `scaler.step` nor
    `scaler.unscale_` in between.

    ## Why is this bad?
    The gradients are 65536 times too large. SGD explodes at once; Adam hides it until weight decay,
    epsilon or clipping matter. Steps with infinite gradients are not skipped either.

    ## Example
    ```python
    import torch

    def train(model, optimizer, criterion, loader):
        scaler = torch.amp.GradScaler()
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch

    def train(model, optimizer, criterion, loader):
        scaler = torch.amp.GradScaler()
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    ```

    ## Fix safety
    The fix is safe: gradients of a scaled loss have to go through the scaler. It is offered where
    the backward pass stands in the same block.

    ## When not to use
    Code that calls `unscale_` and looks for infinities itself may step by itself: not reported.

    ## References
    - [torch.amp.GradScaler](https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling)
    """

    code = "TLP002"
    severity = Severity.ERROR
    scout = part_of_identifier("step") & pattern(rb"\.(?:\w+_)?step\s*\(")
    help = "call `scaler.step(optimizer)` and then `scaler.update()`"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for run in file.runs:
            for found in scaled_steps(run):
                if found.step.file is file:
                    yield self.report(
                        found.step.node,
                        "this steps on gradients that are still multiplied by the loss scale "
                        f"(backward pass in {place(found.backward, file)})",
                        repair=_repair(file, found),
                    )


def _repair(file: FileModel, found: ScaledStep) -> Repair | None:
    step, backward = found.step.node, found.backward.node
    scaler = _scaler(backward)
    both = neighbours(file, backward, step)
    is_plain = isinstance(step, ast.Call) and not step.args and not step.keywords
    if scaler is None or both is None or not is_plain or not isinstance(both[1], ast.Expr):
        return None
    assert isinstance(step, ast.Call)
    optimizer = step.func
    is_updated = "update(" in "".join(ast.unparse(item) for item in _rest(file, both[1]))
    if not isinstance(optimizer, ast.Attribute):
        return None

    def step_through_scaler(editor: Editor) -> None:
        name = editor.source(scaler)
        editor.replace(step, f"{name}.step({editor.source(optimizer.value)})")
        if not is_updated:
            editor.insert_after(both[1], f"{name}.update()")

    return Repair("Step through the scaler", Applicability.SAFE, step_through_scaler)


def _rest(file: FileModel, statement: ast.stmt) -> list[ast.stmt]:
    block = block_of(file, statement)
    return block[block.index(statement) + 1 :]


def _scaler(backward: ast.AST) -> ast.expr | None:
    """``scaler`` of ``scaler.scale(loss).backward()``."""
    if not isinstance(backward, ast.Call) or not isinstance(backward.func, ast.Attribute):
        return None
    scaled = backward.func.value
    if not isinstance(scaled, ast.Call) or not isinstance(scaled.func, ast.Attribute):
        return None
    return scaled.func.value if is_name_chain(scaled.func.value) else None
