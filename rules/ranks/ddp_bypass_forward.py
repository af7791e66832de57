from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.bypasses import Bypass, bypasses
from trainlint.analysis.places import place_of
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import part_of_identifier

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class DdpBypassForward(Rule):
    """A model is trained around its DDP wrapper.

    ## What it does
    Reports a forward pass whose loss is trained on and that goes through `ddp.module`, through the
    model as it was before the wrapping, or through one of its methods, and not through the
    wrapper.

    ## Why is this bad?
    Only the wrapper's own forward pass prepares the exchange of gradients. Without it no gradient
    is averaged: each process trains on its own share of the data, and the weights drift apart
    while everything looks fine.

    ## Example
    ```python
    from torch.nn.parallel import DistributedDataParallel

    def train(model, rank, loader, criterion, optimizer):
        ddp = DistributedDataParallel(model, device_ids=[rank])
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(ddp.module(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    from torch.nn.parallel import DistributedDataParallel

    def train(model, rank, loader, criterion, optimizer):
        ddp = DistributedDataParallel(model, device_ids=[rank])
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(ddp(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    The fix is unsafe: it calls the wrapper instead of the model, which may want other arguments.

    ## When not to use it
    Where gradients are exchanged by hand after the backward pass.

    ## References
    - [torch.nn.parallel.DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
    """

    code = "TLR001"
    severity = Severity.ERROR
    scout = part_of_identifier("DistributedDataParallel") & part_of_identifier("backward")
    help = "call the wrapper; let the model's `forward` call the method that is meant"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        # Wrapping and training may be in different files: this one must hold both.
        is_suspect = self.scout.suspects(file.source.glance)
        if not is_suspect or _exchanges_gradients_itself(file):
            return
        reported: set[ast.AST] = set()
        for run in file.runs:
            for bypass in bypasses(run):
                if bypass.file is file and bypass.node not in reported:
                    reported.add(bypass.node)
                    wrapping = bypass.wrapper.node
                    home = file.project.holding(wrapping) or file
                    yield self.report(
                        bypass.node,
                        f"this goes around the DDP wrapper ({place_of(wrapping, home, file)}): "
                        "no process sees the gradients of the others",
                        repair=_repair(file, bypass),
                    )


def _exchanges_gradients_itself(file: FileModel) -> bool:
    return "all_reduce" in file.source.text and ".grad" in file.source.text


def _repair(file: FileModel, bypass: Bypass) -> Repair | None:
    call, wrapper = bypass.node, bypass.wrapper.node
    statement = file.index.parents.get(wrapper)
    if not isinstance(call, ast.Call) or not isinstance(statement, ast.Assign):
        return None
    target, called = statement.targets[0], call.func
    is_here = file.index.enclosing_function(statement) is file.index.enclosing_function(call)
    is_model_itself = isinstance(called, ast.Name) or (
        isinstance(called, ast.Attribute) and called.attr == "module"
    )
    if not (isinstance(target, ast.Name) and is_here and is_model_itself):
        return None

    def call_wrapper(editor: Editor) -> None:
        editor.replace(called, target.id)

    return Repair(f"call `{target.id}`", Applicability.UNSAFE, call_wrapper)
