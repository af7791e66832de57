from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.checkpoint_loads import (
    TORCH_LOAD,
    argument_of,
    becomes_weights,
    checkpoint_loads,
    reads_own_file,
    sounds_like_weights,
)
from trainlint.analysis.ranks import is_distributed, rank_guards
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class LoadNoMapLocation(Rule):
    """A checkpoint is loaded without saying to which device.

    ## What it does
    Reports `torch.load(...)` without `map_location` where the result is a checkpoint: it goes into
    `load_state_dict`, or path and name say so. A warning where the file trains on several
    processes, for information elsewhere.

    ## Why is this bad?
    Tensors go back to the device that they were saved from. Each process of a distributed run puts
    its copy on the first GPU, which fills up; a machine without that GPU cannot load the file at
    all. `load_state_dict` copies to the right device anyway.

    ## Example
    ```python
    import torch

    def resume(model, path):
        model.load_state_dict(torch.load(path, weights_only=True))
    ```

    ## Use instead
    ```python
    import torch

    def resume(model, path):
        model.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
    ```

    ## Fix safety
    The fix is safe: it is offered where the result goes into `load_state_dict`, which copies the
    tensors to where the model is.

    ## When not to use it
    Where checkpoints are written and read on the CPU, or always on the same single GPU.

    ## References
    - [torch.load](https://docs.pytorch.org/docs/stable/generated/torch.load.html)
    """

    code = "TLC004"
    severity = Severity.INFO
    scout = TORCH_LOAD
    help = 'pass `map_location="cpu"`, and let `load_state_dict` copy to the model\'s device'
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for call in checkpoint_loads(file):
            if argument_of(call, 1, "map_location") is not None:
                continue
            if _is_on_gpu_for_sure(file, call) or reads_own_file(file, call):
                continue
            goes_into_model = becomes_weights(file, call)
            if goes_into_model or sounds_like_weights(file, call):
                yield self._report(call, goes_into_model, _loads_on_all_ranks(file, call))

    def _report(self, call: ast.Call, goes_into_model: bool, on_all_ranks: bool) -> Report:
        def add(editor: Editor) -> None:
            editor.add_argument(call, 'map_location="cpu"')

        return self.report(
            call,
            "every process loads this checkpoint onto the GPU it was saved from"
            if on_all_ranks
            else "this checkpoint only loads where the device it was saved from exists",
            severity=Severity.WARNING if on_all_ranks else Severity.INFO,
            repair=Repair("load to the CPU first", Applicability.SAFE, add)
            if goes_into_model
            else None,
        )


def _loads_on_all_ranks(file: FileModel, call: ast.Call) -> bool:
    """On several processes, and not where another branch is the one for several."""
    if not is_distributed(file) or rank_guards(file, call):
        return False
    node: ast.AST | None = call
    while node is not None:
        if isinstance(node, ast.If) and any(
            "map_location" in ast.unparse(item) and call not in set(ast.walk(item))
            for item in (*node.body, *node.orelse)
        ):
            return False
        node = file.index.parents.get(node)
    return True


def _is_on_gpu_for_sure(file: FileModel, call: ast.Call) -> bool:
    """``if torch.cuda.is_available(): torch.load(path)``: the other branch says where else."""
    node: ast.AST | None = call
    while node is not None:
        if isinstance(node, ast.If) and "is_available" in ast.unparse(node.test):
            return True
        node = file.index.parents.get(node)
    return False
