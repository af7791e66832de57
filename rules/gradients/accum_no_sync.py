from __future__ import annotations

import ast
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.accumulation import Window, windows
from trainlint.analysis.lap_arithmetic import laps_that_hold
from trainlint.analysis.trace import EventKind, Loop, Scope, around, events, steps
from trainlint.analysis.values import overlaps
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import identifier


class AccumNoSync(Rule):
    """`no_sync()` covers the wrong micro-batch, or only the backward pass.

    ## What it does
    Reports an accumulation loop that enters `model.no_sync()` on the very lap that steps, and a
    `no_sync()` that holds the backward pass but not the forward pass before it.

    ## Why is this bad?
    On the lap that steps, gradients have to be averaged over the ranks; without it every rank moves
    by its own gradients, and the replicas drift apart in silence. Around the backward pass alone
    `no_sync()` does nothing: DistributedDataParallel decides in the forward pass.

    ## Example
    ```python
    from contextlib import nullcontext

    def train(model, loader, criterion, optimizer, k):
        for i, (x, y) in enumerate(loader):
            context = model.no_sync() if i % k else nullcontext()
            with context:
                loss = criterion(model(x), y) / k
                loss.backward()
            if (i + 1) % k == 0:
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Use instead
    ```python
    from contextlib import nullcontext

    def train(model, loader, criterion, optimizer, k):
        for i, (x, y) in enumerate(loader):
            context = model.no_sync() if (i + 1) % k else nullcontext()
            with context:
                loss = criterion(model(x), y) / k
                loss.backward()
            if (i + 1) % k == 0:
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## When not to use it
    `accelerator.accumulate(model)` and `model.require_backward_grad_sync` are fine and not
    reported.

    ## References
    - [DistributedDataParallel.no_sync](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
    """

    code = "TLG008"
    severity = Severity.WARNING
    scout = identifier("no_sync")
    help = "leave `no_sync()` on the last micro-batch of each step; put the forward pass inside it"

    def check(self, file: FileModel) -> Iterator[Report]:
        for window in windows(file):
            for place in _no_sync_places(window):
                if _covers_the_step(window, place):
                    line = window.branch.lineno
                    yield self.report(
                        place, f"ranks are not synchronised on the lap that steps (line {line})"
                    )
        for scope in _backward_only(file):
            yield self.report(scope.node, "around the backward pass alone `no_sync()` does nothing")


def _no_sync_places(window: Window) -> Iterator[ast.Attribute]:
    for node in ast.walk(window.node):
        if isinstance(node, ast.Attribute) and node.attr == "no_sync":
            yield node


def _covers_the_step(window: Window, place: ast.Attribute) -> bool:
    """Whether some lap both steps and switches synchronisation off."""
    stepping = laps_that_hold(window, [(window.test, True)])
    covered = laps_that_hold(window, _conditions(window, place))
    return stepping is not None and covered is not None and not stepping.isdisjoint(covered)


def _conditions(window: Window, place: ast.Attribute) -> list[tuple[ast.expr, bool]]:
    """The tests that lead to a place within the lap, each with the outcome that it needs."""
    found: list[tuple[ast.expr, bool]] = []
    child: ast.AST = place
    parents = window.file.index.parents
    while child is not window.node:
        parent = parents[child]
        if isinstance(parent, ast.IfExp) and child is not parent.test:
            found.append((parent.test, child is parent.body))
        elif isinstance(parent, ast.If) and child is not parent.test:
            found.append((parent.test, child in parent.body))
        child = parent
    return found


def _backward_only(file: FileModel) -> Iterator[Scope]:
    seen: set[ast.AST] = set()
    for run in file.runs:
        for step in steps(run.trace):
            if not isinstance(step, Scope) or step.kind != "no_sync" or step.node in seen:
                continue
            backward = next(events(step.body, EventKind.BACKWARD), None)
            inside = any(
                True for _ in events(step.body, EventKind.FORWARD, EventKind.LOSS, EventKind.OPAQUE)
            )
            loops = [item for item in around(run.trace, step) if isinstance(item, Loop)]
            if step.file is not file or backward is None or inside or not loops:
                continue
            forwards = events(loops[-1].body, EventKind.FORWARD)
            if any(overlaps(event.target, step.subject) for event in forwards):
                seen.add(step.node)
                yield step
