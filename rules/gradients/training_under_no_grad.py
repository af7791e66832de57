from __future__ import annotations

import ast
from collections.abc import Iterator

from trainlint.analysis import FileModel, FunctionDefinition
from trainlint.analysis.frameworks import framework_of
from trainlint.analysis.grad_scopes import (
    backwards_without_graph,
    is_without_gradients,
    trained_without_graph,
)
from trainlint.analysis.places import place
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import identifier, pattern, text


class TrainingUnderNoGrad(Rule):
    """A training step runs where autograd is switched off.

    ## What it does
    Reports a backward pass under `no_grad()` or `inference_mode()` whose forward pass is under it
    as well, such a decorator on the `forward` of a network that an optimizer trains, and on a
    framework's `training_step`.

    ## Why is this bad?
    There is no graph to go back through. `backward()` raises an error, or, where another part of
    the loss has a graph, the network is silently left out of training.

    ## Example
    ```python
    import torch

    class Trainer:
        @torch.no_grad()
        def train_epoch(self, model, loader, criterion, optimizer):
            for x, y in loader:
                optimizer.zero_grad()
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()
    ```

    ## Use instead
    ```python
    import torch

    class Trainer:
        def train_epoch(self, model, loader, criterion, optimizer):
            for x, y in loader:
                optimizer.zero_grad()
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()
    ```

    ## When not to use it
    Frozen encoders, teachers and `generate` methods belong under `no_grad`; they are not reported.

    ## References
    - [Locally disabling gradient computation](https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation)
    """

    code = "TLG014"
    severity = Severity.ERROR
    preview = True
    scout = identifier("no_grad", "inference_mode") & (
        text("backward(", ".step(", "fit(") | pattern(rb"def[ \t]+train\w*\((?!self,[ \t]*mode\b)")
    )
    help = "take the training step out of `no_grad()`; decorate evaluation only"

    def check(self, file: FileModel) -> Iterator[Report]:
        decorated: dict[FunctionDefinition, None] = {}
        for run in file.runs:
            decorated.update(dict.fromkeys(trained_without_graph(run)))
            for scope, backward in backwards_without_graph(run):
                if scope.file is file:
                    where = place(backward, file)
                    yield self.report(
                        scope.node, f"the backward pass ({where}) finds no graph under this"
                    )
        decorated.update(dict.fromkeys(_training_steps(file)))
        for function in decorated:
            if function.file is file:
                yield self.report(
                    _decorator(function), f"`{function.name}` is trained, but builds no graph"
                )


def _training_steps(file: FileModel) -> Iterator[FunctionDefinition]:
    for owner in file.classes.values():
        method = owner.own_methods.get("training_step")
        if method is None or framework_of(owner) is None:
            continue
        if is_without_gradients(method) and "automatic_optimization" not in file.source.text:
            yield method


def _decorator(function: FunctionDefinition) -> ast.expr:
    return next(
        item
        for item in function.node.decorator_list
        if "no_grad" in ast.unparse(item) or "inference_mode" in ast.unparse(item)
    )
