from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.accumulation import MicroBatches, Window, micro_batches, windows
from trainlint.analysis.loss_expressions import is_plain_backward, loss_expression
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, part_in_any_case, part_of_identifier, text

if TYPE_CHECKING:
    from trainlint.fixing import Editor

# A sum is divided, if at all, by something that the user chose.
_SUMS = re.compile(r"reduction\s*=\s*['\"]sum['\"]|size_average\s*=\s*False|reduce\s*=\s*False")
_SCALES_GRADIENTS = re.compile(r"scale_grad|\.grad\s*[*/]=|\.grad\.(mul|div)_")
_SCALES = re.compile(r"scal|norm|accum|count|factor", re.IGNORECASE)


class AccumLossNotScaled(Rule):
    """The losses of accumulated micro-batches are not divided by their number.

    ## What it does
    Reports a backward pass on every lap of a loop that steps on each k-th lap, where nothing in the
    files around divides by `k`: neither the loss, nor the gradients, nor the learning rate.

    ## Why is this bad?
    Gradients add up to k times those of one large batch. With SGD the learning rate is multiplied
    by k; with Adam, clipping bites k times harder.

    ## Example
    ```python
    import torch

    def train(model, loader, criterion, k):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            loss.backward()
            if (i + 1) % k == 0:
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Use instead
    ```python
    import torch

    def train(model, loader, criterion, k):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            (loss / k).backward()
            if (i + 1) % k == 0:
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Fix safety
    The fix is unsafe: a learning rate that was tuned with the larger gradients is too small after
    it.

    ## When not to use it
    Where the losses are sums and the learning rate is chosen for the sum over k micro-batches.

    ## References
    - [Gradient accumulation](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation)
    """

    code = "TLG006"
    severity = Severity.WARNING
    scout = (
        part_of_identifier("backward")
        & identifier("step")
        & (text("%") | part_in_any_case("accum", "micro"))
        & text(".step(")
    )
    help = "divide the loss by the number of micro-batches before `backward()`"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        accumulated: list[Window | MicroBatches] = [
            window
            for window in windows(file)
            if window.is_accumulation and window.cleared_each_lap() is None
        ]
        accumulated += [batches for batches in micro_batches(file) if batches.cleared is None]
        for window in accumulated:
            if _is_normalised(window) or _divides_elsewhere(window):
                continue
            first = window.backwards[0]
            if first.file is file and is_plain_backward(first):
                size = ast.unparse(window.size)
                message = f"gradients of {size} micro-batches add up, and nothing divides by {size}"
                yield self.report(first.node, message, repair=_repair(window))


def _is_normalised(window: Window | MicroBatches) -> bool:
    """Whether the loss is divided, or multiplied by some scale, or else its gradients are."""
    for backward in window.backwards:
        expression = loss_expression(backward) if backward.file is window.file else None
        if expression is None:
            return True
        names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
        around = window.file.index.enclosing_function(backward.node) or window.file.tree
        if _SCALES_GRADIENTS.search(ast.unparse(around)):
            return True
        computed = [
            node.value
            for node in ast.walk(around)
            if isinstance(node, (ast.Assign, ast.AugAssign)) and _assigns(node, names)
        ]
        if any(_rescales(node) for root in (expression, *computed) for node in ast.walk(root)):
            return True
        if _may_be_a_sum(window.file, computed or [expression]):
            return True
        if any(
            isinstance(node, ast.AugAssign)
            and _assigns(node, names)
            and isinstance(node.op, (ast.Div, ast.Mult))
            for node in ast.walk(around)
        ):
            return True
    return False


def _may_be_a_sum(file: FileModel, computed: list[ast.expr]) -> bool:
    """Whether the loss, or any loss of the file where this one is not one of torch's functions."""
    functions = [file.qualified(node.func) for node in computed if isinstance(node, ast.Call)]
    is_torchs = len(functions) == len(computed) and all(
        name is not None and name.startswith("torch.nn.functional.") for name in functions
    )
    texts = map(ast.unparse, computed) if is_torchs else [file.source.text]
    return any(_SUMS.search(text) for text in texts)


def _assigns(node: ast.AST, names: set[str]) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else targets
    held = (item for target in targets for item in ast.walk(target))
    return any(isinstance(item, ast.Name) and item.id in names for item in held)


def _rescales(node: ast.AST) -> bool:
    if not isinstance(node, ast.BinOp):
        return False
    both = ast.unparse(node)
    return isinstance(node.op, ast.Div) or (
        isinstance(node.op, ast.Mult) and bool(_SCALES.search(both))
    )


def _divides_elsewhere(window: Window | MicroBatches) -> bool:
    """Whether the file, or one that imports join with it, divides by the number.

    Divisions that count steps do not matter.
    """
    if isinstance(window.size, ast.Constant):
        text = window.file.source.text
        return bool(re.search(rf"/=?\s*{window.size.value!r}\b", text.replace("//", "")))
    name = ast.unparse(window.size).rpartition(".")[2]
    divides = re.compile(rf"(?<!/)/=?\s*(float\(|max\()?\(?[\w.]*\b{re.escape(name)}\b")
    counts = re.compile(r"\blen\(|num_(update|train|batch)|steps_per|math\.ceil")
    connected = window.file.project.connected(window.file.path)
    mentioning = window.file.project.files_mentioning(name)
    others = [other for other in mentioning if other.path in connected]
    lines = (line for file in (window.file, *others) for line in file.source.lines if name in line)
    return any(divides.search(line) and not counts.search(line) for line in lines)


def _repair(window: Window | MicroBatches) -> Repair | None:
    expression = loss_expression(window.backwards[0])
    if len(window.backwards) > 1 or not isinstance(expression, ast.Name):
        return None
    size = window.size

    def divide(editor: Editor) -> None:
        editor.replace(expression, f"{editor.source(expression)} / {editor.source(size)}")

    return Repair(f"divide the loss by {ast.unparse(size)}", Applicability.UNSAFE, divide)
