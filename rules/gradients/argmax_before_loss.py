from __future__ import annotations

import ast
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.hard_choices import hard_choice
from trainlint.analysis.loss_expressions import differentiated_names
from trainlint.analysis.roles import loss_kind
from trainlint.analysis.trace import Event, EventKind, events
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import pattern, text


class ArgmaxBeforeLoss(Rule):
    """A loss is computed from hard predictions, which pass no gradient on.

    ## What it does
    Reports the input of a loss that is the outcome of `argmax`, `max(...)[1]`, `round`, a
    comparison, or a one-hot code of these, where the loss is then differentiated.

    ## Why is this bad?
    Which class is largest does not change with a small change of the weights: the gradient is zero
    or does not exist. Alone such a loss raises an error; beside another term, or made a leaf with
    `requires_grad`, it trains nothing and nobody notices.

    ## Example
    ```python
    import torch.nn.functional as F

    def train(model, loader, optimizer):
        for x, y in loader:
            optimizer.zero_grad()
            prediction = model(x).argmax(dim=1)
            loss = F.mse_loss(prediction.float(), y.float())
            loss.backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch.nn.functional as F

    def train(model, loader, optimizer):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## When not to use it
    Hard labels as the target, indices and metrics are fine and not reported.

    ## References
    - [torch.nn.functional.gumbel_softmax](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.gumbel_softmax.html)
    """

    code = "TLG012"
    severity = Severity.ERROR
    scout = text("backward(", ".grad(", ".scale(") & pattern(
        rb"arg(max|min|sort)|round|one_hot|floor|ceil|sign|[<>]|indices|bernoulli|multinomial|"
        rb"max|min|topk|sort|kthvalue|mode|median|\b[gl][te]\("
    )
    help = "compute the loss from the scores, or use a soft choice such as `gumbel_softmax`"

    def check(self, file: FileModel) -> Iterator[Report]:
        seen: set[ast.AST] = set()
        for run in file.runs:
            for event in events(run.trace, EventKind.LOSS):
                if event.file is not file or event.node in seen:
                    continue
                seen.add(event.node)
                given = _input(event)
                choice = hard_choice(file, given) if given is not None else None
                if choice is not None and given is not None and _is_differentiated(file, event):
                    what = ast.unparse(choice)
                    what = what if len(what) < 40 else f"{what[:36]} ..."
                    yield self.report(given, f"no gradient passes through `{what}`")


def _input(event: Event) -> ast.expr | None:
    call = event.node
    if not isinstance(call, ast.Call):
        return None
    if call.args:
        return None if isinstance(call.args[0], ast.Starred) else call.args[0]
    kind = loss_kind(event.target)
    name = kind.input_name if kind is not None else "input"
    return next((item.value for item in call.keywords if item.arg == name), None)


def _is_differentiated(file: FileModel, event: Event) -> bool:
    """Whether a backward pass of the function starts from the loss, or it is a loss's own part."""
    function = file.index.enclosing_function(event.node)
    statement = file.index.statement(event.node)
    names: set[str] = set()
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names = {ast.unparse(target) for target in targets}
    if names & differentiated_names(function or file.tree):
        return True
    parent = file.index.parents.get(event.node)
    if isinstance(parent, ast.Attribute) and parent.attr == "backward":
        return True
    if (
        function is None
        or "loss" not in function.name.lower()
        or "backward" not in file.source.text
    ):
        return False
    returned = [
        {ast.unparse(part) for part in ast.walk(node.value)}
        for node in ast.walk(function)
        if isinstance(node, ast.Return) and node.value is not None
    ]
    return isinstance(statement, ast.Return) or any(names & parts for parts in returned)
