from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.checkpoint_loads import TORCH_LOAD, argument_of, checkpoint_loads
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule

if TYPE_CHECKING:
    from trainlint.fixing import Editor

# Since this version `weights_only=True` is the default.
_SAFE_BY_DEFAULT = (2, 6)
_MEANT = "weights_only"


class TorchLoadUnsafe(Rule):
    """A file is unpickled, which runs whatever code it holds.

    ## What it does
    Reports `torch.load(..., weights_only=False)`, and `torch.load` without the argument in a
    project that declares a version of torch before 2.6, where that means the same.

    ## Why is this bad?
    A pickle can execute anything when it is opened. A checkpoint from somebody else, or one that
    somebody else could replace, is a program that runs with your rights.

    ## Example
    ```python
    import torch

    def load(model, path):
        model.load_state_dict(torch.load(path, map_location="cpu", weights_only=False))
    ```

    ## Use instead
    ```python
    import torch

    def load(model, path):
        model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    ```

    ## Fix safety
    The fix is unsafe: files that hold more than tensors, numbers, strings and containers of these
    do not load any more. Allow such classes with `torch.serialization.add_safe_globals`.

    ## When not to use it
    For files that only you write and that hold objects of your own classes.

    ## References
    - [torch.load](https://docs.pytorch.org/docs/stable/generated/torch.load.html)
    - [Serialization semantics: weights_only](https://docs.pytorch.org/docs/stable/notes/serialization.html#weights-only)
    """

    code = "TLC005"
    severity = Severity.WARNING
    preview = True
    scout = TORCH_LOAD
    help = "pass `weights_only=True`, or keep weights in safetensors files"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        if file.is_unit_test:
            return
        for call in checkpoint_loads(file):
            given = argument_of(call, len(call.args), _MEANT)
            if isinstance(given, ast.Constant) and given.value is False:
                yield self._report(call, "`weights_only=False` runs any code that this file holds")
            elif given is None and _may_be_old_torch(file):
                yield self._report(
                    call, "before torch 2.6, which this project allows, this runs code in the file"
                )

    def _report(self, call: ast.Call, message: str) -> Report:
        def restrict(editor: Editor) -> None:
            editor.set_argument(call, _MEANT, "True")

        return self.report(
            call,
            message,
            repair=Repair("load weights only", Applicability.UNSAFE, restrict),
        )


def _may_be_old_torch(file: FileModel) -> bool:
    oldest = file.project.oldest_declared("torch")
    return oldest is not None and oldest[:2] < _SAFE_BY_DEFAULT
