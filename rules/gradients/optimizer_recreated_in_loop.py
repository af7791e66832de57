from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.evaluations import contexts
from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.knowledge.training import OPTIMIZER_CLASSES
from trainlint.analysis.ownership import owners
from trainlint.analysis.places import place
from trainlint.analysis.roles import Role, has_role
from trainlint.analysis.trace import Branch, Event, EventKind, Loop, around, events
from trainlint.analysis.values import Constant, Group, Object, Value, elements
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import identifier, part_of_identifier, text

# New parameters, other tasks and fresh starts need an optimizer of their own.
_RESTARTS = re.compile(
    r"requires_grad(_\(|\s*=[^=])|unfreeze|freeze|load_state_dict|add_module|reset_|(model|net|network|agent|policy|learner)\w*\.reset|restart|reinit|prune|warm_?start"
)
_EPOCH = re.compile(r"epoch|(^|\W)ep($|\W)", re.IGNORECASE)


class OptimizerRecreatedInLoop(Rule):
    """The optimizer is built anew in every epoch.

    ## What it does
    Reports an optimizer with memory (momentum, Adam's moments) that is made on every lap of a loop
    over epochs for a model that is older than the loop. Calls are followed: a function that builds
    the optimizer and is called once an epoch counts.

    ## Why is this bad?
    Momentum and Adam's moments start from zero in every epoch, and so does the schedule that hangs
    on the optimizer. The first steps of each epoch are far too large.

    ## Example
    ```python
    import torch

    def train_epoch(model, loader, criterion):
        optimizer = torch.optim.Adam(model.parameters())
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()

    def train(model, loader, criterion, epochs):
        for epoch in range(epochs):
            train_epoch(model, loader, criterion)
    ```

    ## Use instead
    ```python
    import torch

    def train_epoch(model, loader, criterion, optimizer):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()

    def train(model, loader, criterion, epochs):
        optimizer = torch.optim.Adam(model.parameters())
        for epoch in range(epochs):
            train_epoch(model, loader, criterion, optimizer)
    ```

    ## When not to use it
    Deliberate restarts: a new optimizer for each task, fold, client or trial, or after layers were
    unfrozen. Such loops are not reported.

    ## References
    - [Adam](https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html)
    """

    code = "TLG013"
    severity = Severity.ERROR
    scout = (
        part_of_identifier("parameters")
        & (identifier(*OPTIMIZER_CLASSES) | identifier("optim"))
        & text("parameters(")
        & (text("optim.", "optim import") | part_of_identifier(*OPTIMIZER_CLASSES))
    )
    help = "build the optimizer once, before the loop, and pass it in"

    def check(self, file: FileModel) -> Iterator[Report]:
        for run, _ in contexts(file):
            for event in events(run.trace, EventKind.NEW):
                if event.file is not file or not _has_memory(event):
                    continue
                loop = _epochs_around(run, event)
                if (
                    loop is not None
                    and _is_stepped(loop, event)
                    and _is_for_older_model(loop, event)
                ):
                    yield self.report(event.node, _message(file, loop))


def _has_memory(event: Event) -> bool:
    made = event.target
    if not isinstance(made, Object) or not has_role(made, Role.OPTIMIZER):
        return False
    name = made.dotted.rpartition(".")[2]
    if name == "LBFGS" or not made.dotted[:1].isalpha() or not name[:1].isupper():
        return False
    momentum = made.argument(2, "momentum")
    is_plain = momentum is None or (isinstance(momentum, Constant) and not momentum.value)
    return not (name == "SGD" and is_plain)


def _epochs_around(run: Run, event: Event) -> Loop | None:
    """The loop over epochs that makes the optimizer on each lap, whatever its settings say."""
    way = around(run.trace, event)
    loops = [item for item in way if isinstance(item, Loop)]
    if not loops:
        return None
    loop, node = loops[-1], loops[-1].node
    if not isinstance(node, (ast.For, ast.While)) or _are_listed(loop.iterated):
        return None
    header = node.target if isinstance(node, ast.For) else node.test
    words = [ast.unparse(header)] + ([ast.unparse(node.iter)] if isinstance(node, ast.For) else [])
    if not any(_EPOCH.search(text) for text in words):
        return None
    branches = [item for item in way[way.index(loop) + 1 :] if isinstance(item, Branch)]
    return loop if all(_always_makes_one(branch) for branch in branches) else None


def _are_listed(laps: Value | None) -> bool:
    """``for epochs in [10, 20]``: stages, which may each have an optimizer of their own."""
    return isinstance(laps, Group) and bool(laps.elements) and not laps.open


def _always_makes_one(branch: Branch) -> bool:
    return all(
        any(has_role(event.target, Role.OPTIMIZER) for event in events(way, EventKind.NEW))
        for _, way in branch.ways
    )


def _is_stepped(loop: Loop, event: Event) -> bool:
    steps = list(events(loop.body, EventKind.STEP))
    if any(item is event.target for step in steps for item in elements(step.target)):
        return True
    # Made at the end of a lap, for the next one: under the name that the steps go by.
    statement = event.file.index.parents.get(event.node)
    if not isinstance(statement, ast.Assign):
        return False
    names = {f"{ast.unparse(target)}.step" for target in statement.targets}
    return any(
        step.file is event.file
        and isinstance(step.node, ast.Call)
        and ast.unparse(step.node.func) in names
        for step in steps
    )


def _is_for_older_model(loop: Loop, event: Event) -> bool:
    assert event.target is not None
    trained = owners(event.target)
    function = event.file.index.enclosing_function(event.node)
    texts = [loop.file.segment(loop.node)] if isinstance(loop.node, ast.stmt) else []
    if function is not None and not event.file.index.holds(function, loop.node):
        texts.append(event.file.segment(function))
    is_restart = any(_RESTARTS.search(text) for text in texts)
    return bool(trained) and not is_restart and all(item.birth < loop.start for item in trained)


def _message(file: FileModel, loop: Loop) -> str:
    where = place(loop, file)
    return f"a new optimizer on each lap of the loop over epochs ({where}) forgets its moments"
