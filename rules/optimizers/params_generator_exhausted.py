from __future__ import annotations

from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.iterators import SecondWalk, second_walks
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, part_of_identifier, statement_like


class ParamsGeneratorExhausted(Rule):
    """An iterator over parameters is used a second time, when it is empty.

    ## What it does
    Reports the second use of a variable that holds `model.parameters()`, or a `filter`, `chain` or
    generator over parameters: the first use has walked through it.

    ## Why is this bad?
    An iterator yields its elements once. The second user sees no parameters: `clip_grad_norm_`
    clips nothing, a loop does nothing, a sum is zero, and none of them complains.

    ## Example
    ```python
    import torch

    def train(model, criterion, loader):
        trainable = filter(lambda p: p.requires_grad, model.parameters())
        optimizer = torch.optim.SGD(trainable, lr=0.1)
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            torch.nn.utils.clip_grad_norm_(trainable, 1.0)
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch

    def train(model, criterion, loader):
        trainable = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.SGD(trainable, lr=0.1)
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            torch.nn.utils.clip_grad_norm_(trainable, 1.0)
            optimizer.step()
    ```

    ## Fix safety
    The fix is safe: it makes a list of the iterator where it is assigned.

    ## References
    - [Iterator](https://docs.python.org/3/glossary.html#term-iterator)
    """

    code = "TLO009"
    severity = Severity.ERROR
    scout = (
        identifier("parameters", "named_parameters", "requires_grad")
        & part_of_identifier("optim", "Optim", "clip_grad")
        & statement_like(
            rb"[\w.]+[ \t]*=(?!=)\s*(?:[^\n=]*\.\s*(?:named_)?parameters\s*\(|"
            rb"(?:[\w.]*\b(?:filter|map|chain|from_iterable)\s*\(|[(\\])"
            rb"(?s:.{0,600}?)(?:requires_grad|parameters\s*\())"
        )
    )
    help = "keep a list: `list(model.parameters())`"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for found in second_walks(file):
            yield self.report(found.again, _message(found), repair=_repair(found))


def _message(found: SecondWalk) -> str:
    if found.first is found.again:
        return f"`{found.name}` is an iterator: from the second lap of the loop on it is empty"
    line = found.first.lineno
    return f"`{found.name}` is an iterator that line {line} has used up: it is empty here"


def _repair(found: SecondWalk) -> Repair:
    return Repair(
        "Make a list of the iterator",
        Applicability.SAFE,
        lambda editor: editor.wrap(found.made, "list"),
    )
