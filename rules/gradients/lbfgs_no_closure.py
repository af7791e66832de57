from __future__ import annotations

import ast
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.index import Function
from trainlint.analysis.trace import Event, EventKind, events
from trainlint.analysis.values import Object, options
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import identifier, text

_LBFGS = "torch.optim.LBFGS"


class LbfgsNoClosure(Rule):
    """`LBFGS.step()` without a closure, or with one that does not do its work.

    ## What it does
    Reports `step()` of `torch.optim.LBFGS` when it is given no closure, a closure without a
    backward pass, or one that returns nothing; also where the settings choose LBFGS among other
    optimizers and no step of the file has a closure.

    ## Why is this bad?
    LBFGS evaluates the loss several times in each step. Without a closure it raises a `TypeError`;
    a closure that does not call `backward()` leaves it without gradients, and nothing is learned.

    ## Example
    ```python
    import torch

    def fit(model, x, y, criterion):
        optimizer = torch.optim.LBFGS(model.parameters())
        for _ in range(20):
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch

    def fit(model, x, y, criterion):
        optimizer = torch.optim.LBFGS(model.parameters())

        def closure():
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            return loss

        for _ in range(20):
            optimizer.step(closure)
    ```

    ## References
    - [torch.optim.LBFGS](https://docs.pytorch.org/docs/stable/generated/torch.optim.LBFGS.html)
    """

    code = "TLG015"
    severity = Severity.ERROR
    scout = identifier("step") & text(".step(")
    help = "pass a closure that clears, computes the loss, calls `backward()` and returns the loss"

    def check(self, file: FileModel) -> Iterator[Report]:
        for run in file.runs:
            for event in events(run.trace, EventKind.STEP):
                message = _what_is_wrong(event) if event.file is file and _is_lbfgs(event) else None
                if message is not None:
                    yield self.report(event.node, message)


def _is_lbfgs(event: Event) -> bool:
    """Whether this steps LBFGS, or whatever was chosen, the same way for all choices."""
    found = list(options(event.target))
    chosen = [isinstance(item, Object) and item.dotted == _LBFGS for item in found]
    return any(chosen) and (all(chosen) or _treats_all_alike(event))


def _treats_all_alike(event: Event) -> bool:
    """Whether every step of the file is bare, and nothing around this one asks what it steps."""
    file, call = event.file, event.node
    steps = [
        node
        for node in file.nodes(ast.Call)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "step"
    ]
    around: ast.AST | None = call
    while around is not None and not isinstance(around, (ast.For, ast.While, ast.FunctionDef)):
        if isinstance(around, ast.If):
            return False
        around = file.index.parents.get(around)
    return not any(step.args or step.keywords for step in steps)


def _what_is_wrong(event: Event) -> str | None:
    call = event.node
    if not isinstance(call, ast.Call) or not (
        isinstance(call.func, ast.Attribute) and call.func.attr == "step"
    ):
        return None
    if not call.args and not call.keywords:
        return "LBFGS has to evaluate the loss itself, but `step()` is given no closure"
    closure = _closure(event.file, call)
    if closure is None or any(
        isinstance(node, (ast.Yield, ast.Await)) for node in ast.walk(closure)
    ):
        return None
    calls = [node.func for node in ast.walk(closure) if isinstance(node, ast.Call)]
    if not any(_may_differentiate(function) for function in calls):
        return f"the closure `{closure.name}` never calls `backward()`: LBFGS sees no gradients"
    returned = [node.value for node in ast.walk(closure) if isinstance(node, ast.Return)]
    if not any(value is not None for value in returned):
        return f"the closure `{closure.name}` returns nothing; LBFGS needs the loss"
    return None


def _closure(file: FileModel, call: ast.Call) -> Function | None:
    given = call.args[0] if call.args else call.keywords[0].value
    if not isinstance(given, ast.Name):
        return None
    bound = file.index.bindings(given.id, file.index.scope(call))
    is_one = len(bound) == 1 and isinstance(bound[0], (ast.FunctionDef, ast.AsyncFunctionDef))
    return bound[0] if is_one else None  # type: ignore[return-value]


def _may_differentiate(function: ast.expr) -> bool:
    """``backward``, ``autograd.grad``, or a helper that may hide one."""
    name = ast.unparse(function).lower()
    return any(word in name for word in ("backward", "grad(", ".grad", "step", "closure", "update"))
