from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.evaluations import contexts
from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.ownership import networks, reachable, trained_networks
from trainlint.analysis.protocols.gradients import innermost_loop, loops_around
from trainlint.analysis.trace import Event, EventKind, Loop, events
from trainlint.analysis.values import Tensor, Value, elements
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class RetainGraphMisuse(Rule):
    """`retain_graph=True` on the only backward pass of an iteration.

    ## What it does
    Reports `backward(retain_graph=True)` in a loop whose every lap makes a graph with a forward
    pass and goes back through it just once.

    ## Why is this bad?
    Nobody uses the graph again. Usually the flag silences "Trying to backward through the graph a
    second time", which says that a hidden state or memory is carried from one iteration to the
    next: each step then goes back through all earlier ones, and time and memory grow.

    ## Example
    ```python
    def train(model, loader, criterion, optimizer):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward(retain_graph=True)
            optimizer.step()
    ```

    ## Use instead
    ```python
    def train(model, loader, criterion, optimizer):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    The fix is unsafe: if something is carried over, dropping the flag raises the error that it hid;
    `detach()` what is carried.

    ## When not to use it
    Several backward passes through one graph (tasks, adversarial pairs, penalties) need the flag on
    all but the last; such loops are not reported.

    ## References
    - [torch.Tensor.backward](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html)
    """

    code = "TLG010"
    severity = Severity.WARNING
    scout = identifier("retain_graph")
    help = "drop the flag, and detach what is carried from one iteration to the next"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for run, _ in contexts(file):
            for event in events(run.trace, EventKind.BACKWARD):
                if event.file is file and _retains(event) and _is_alone(run, event):
                    message = "keeps the graph, but this is the only backward pass of the iteration"
                    yield self.report(event.node, message, repair=_repair(event))


def _retains(event: Event) -> bool:
    given = {item.arg: item.value for item in getattr(event.node, "keywords", [])}
    flag = given.get("retain_graph")
    return isinstance(flag, ast.Constant) and flag.value is True and "create_graph" not in given


def _is_alone(run: Run, backward: Event) -> bool:
    """Whether the innermost loop makes the graph, and nothing else in it can use it."""
    loop = innermost_loop(run.trace, backward)
    if loop is None or not run.complete or not _makes_graph(loop, backward):
        return False
    mine = trained_networks(backward.target)
    if any(_may_use(event, backward, mine) for event in events(loop.body)):
        return False
    return not any(
        event.node is not backward.node and not trained_networks(event.target).isdisjoint(mine)
        for outer in loops_around(run.trace, backward)[:-1]
        for event in events(outer.body, EventKind.BACKWARD)
    )


def _may_use(event: Event, backward: Event, mine: set[Value]) -> bool:
    """Whether an event of the lap differentiates something, or is handed a loss of ``mine``."""
    if event.node is backward.node:
        return False
    if event.kind in (EventKind.BACKWARD, EventKind.GRADIENT):
        return True
    held = (item for value in event.arguments for item in elements(value))
    return event.kind is EventKind.OPAQUE and any(
        isinstance(item, Tensor)
        and item.is_loss
        and not item.detached
        and not (mine and mine.isdisjoint(item.trains))
        for item in held
    )


def _makes_graph(loop: Loop, backward: Event) -> bool:
    made = networks(
        event.target for event in events(loop.body, EventKind.FORWARD) if event.target is not None
    )
    return bool(made) and trained_networks(backward.target) <= reachable(made)


def _repair(event: Event) -> Repair:
    call = event.node
    assert isinstance(call, ast.Call)

    def drop(editor: Editor) -> None:
        editor.remove_argument(call, "retain_graph")

    return Repair("drop `retain_graph`", Applicability.UNSAFE, drop)
