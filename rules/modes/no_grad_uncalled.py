from __future__ import annotations

import ast
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, pattern

_CONTEXTS = frozenset(
    f"{home}.{name}"
    for home in ("torch", "torch.autograd")
    for name in ("no_grad", "enable_grad", "inference_mode")
)


class NoGradUncalled(Rule):
    """`with torch.no_grad:` lacks its parentheses.

    ## What it does
    Reports `torch.no_grad`, `torch.inference_mode` and `torch.enable_grad` as the context of a
    `with` statement without being called.

    ## Why is this bad?
    The class itself is no context manager: Python raises a `TypeError`, but only when the line is
    reached. That is often the first validation, after hours of training.

    ## Example
    ```python
    import torch

    def predict(model, x):
        with torch.no_grad:
            return model(x)
    ```

    ## Use instead
    ```python
    import torch

    def predict(model, x):
        with torch.no_grad():
            return model(x)
    ```

    ## Fix safety
    The fix is safe: the code cannot run without the parentheses.

    ## References
    - [torch.no_grad](https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html)
    """

    code = "TLM008"
    severity = Severity.ERROR
    scout = identifier("no_grad", "inference_mode", "enable_grad") & pattern(
        rb"with\b[^:]*\b(?:no_grad|inference_mode|enable_grad)\b(?!\s*\()"
    )
    help = "add the parentheses"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for item in file.nodes(ast.withitem):
            if file.qualified(item.context_expr) in _CONTEXTS:
                yield self._report(item.context_expr)

    def _report(self, context: ast.expr) -> Report:
        written = ast.unparse(context)
        return self.report(
            context,
            f"`{written}` is not called, so this `with` raises a TypeError when it is reached",
            repair=Repair(
                "Add the parentheses", Applicability.SAFE, lambda editor: editor.call(context)
            ),
        )
