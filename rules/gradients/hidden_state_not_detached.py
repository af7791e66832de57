from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.carried_states import CarriedState, carried_states
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, text

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class HiddenStateNotDetached(Rule):
    """A recurrent state is carried from batch to batch with its graph.

    ## What it does
    Reports `output, state = network(x, state)` in a loop that calls `backward()` on every lap,
    where the state is made before the loop and nothing in the loop detaches or renews it.

    ## Why is this bad?
    The second backward pass goes back into the graph of the first and raises "Trying to backward
    through the graph a second time"; with `retain_graph=True` it grows without bound.

    ## Example
    ```python
    from torch import nn

    def train(chunks, criterion, optimizer):
        rnn = nn.GRU(10, 20)
        hidden = None
        for x, y in chunks:
            optimizer.zero_grad()
            output, hidden = rnn(x, hidden)
            criterion(output, y).backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    from torch import nn

    def train(chunks, criterion, optimizer):
        rnn = nn.GRU(10, 20)
        hidden = None
        for x, y in chunks:
            optimizer.zero_grad()
            output, hidden = rnn(x, hidden)
            criterion(output, y).backward()
            hidden = hidden.detach()
            optimizer.step()
    ```

    ## Fix safety
    The fix is unsafe: it cuts back-propagation through time at the end of each batch, which changes
    what is learned where `retain_graph=True` carried it on.

    ## References
    - [torch.Tensor.detach](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html)
    """

    code = "TLG011"
    severity = Severity.ERROR
    scout = identifier("backward", "manual_backward") & text(".backward(", "manual_backward(")
    help = "detach the state between batches: `state = state.detach()`"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for carried in carried_states(file):
            name = ", ".join(carried.names)
            message = f"`{name}` carries the graph of all batches so far into this one"
            yield self.report(carried.call, message, repair=_repair(carried))


def _repair(carried: CarriedState) -> Repair | None:
    cut = ", ".join(f"{name}.detach()" for name in carried.names)
    if carried.is_pair and len(carried.names) == 1:
        cut = f"tuple(part.detach() for part in {carried.names[0]})"
    elif carried.is_pair is None:
        return None
    statement = carried.backward

    def detach(editor: Editor) -> None:
        editor.insert_after(statement, f"{', '.join(carried.names)} = {cut}")

    return Repair("detach the state after the backward pass", Applicability.UNSAFE, detach)
