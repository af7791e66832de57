from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.places import place
from trainlint.analysis.samplers import RepeatedSampler, repeated_samplers
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import part_of_identifier

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class SamplerSetEpochMissing(Rule):
    """A `DistributedSampler` is never told the epoch.

    ## What it does
    Follows a shuffling `DistributedSampler` through loaders, helpers and other files to the loop
    that trains on it, and reports it if that loop repeats epoch after epoch and nothing calls
    `set_epoch` on the sampler or on what holds it.

    ## Why is this bad?
    The sampler seeds its shuffle with the epoch number alone. Without `set_epoch` every epoch has
    the same order and the same batches, so training on several devices is less random than on one.

    ## Example
    ```python
    from torch.utils.data import DataLoader, DistributedSampler

    def fit(model, dataset, optimizer, criterion, epochs):
        sampler = DistributedSampler(dataset)
        loader = DataLoader(dataset, batch_size=64, sampler=sampler)
        for epoch in range(epochs):
            for x, y in loader:
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                optimizer.step()
    ```

    ## Use instead
    ```python
    from torch.utils.data import DataLoader, DistributedSampler

    def fit(model, dataset, optimizer, criterion, epochs):
        sampler = DistributedSampler(dataset)
        loader = DataLoader(dataset, batch_size=64, sampler=sampler)
        for epoch in range(epochs):
            sampler.set_epoch(epoch)
            for x, y in loader:
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                optimizer.step()
    ```

    ## Fix safety
    The fix is safe where the sampler's name is in sight of the epoch loop, and unsafe where it goes
    through the loader: `loader.sampler.set_epoch(epoch)`.

    ## References
    - [torch.utils.data.distributed.DistributedSampler](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler)
    """

    code = "TLD001"
    severity = Severity.ERROR
    scout = part_of_identifier("DistributedSampler")
    help = "call `sampler.set_epoch(epoch)` at the top of every epoch"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for found in repeated_samplers(file):
            message = _message(file, found)
            yield self.report(found.sampler.node, message, repair=_repair(file, found))


def _message(file: FileModel, found: RepeatedSampler) -> str:
    where = place(found.batches, file)
    return f"nothing calls `set_epoch`: every epoch of the loop at {where} has the same order"


def _repair(file: FileModel, found: RepeatedSampler) -> Repair | None:
    loop, batches = found.epochs.node, found.batches.node
    if found.epochs.file is not file or not isinstance(loop, ast.For):
        return None
    if not isinstance(loop.target, ast.Name) or loop.target.id.startswith("_"):
        return None
    epoch = loop.target.id
    name = _name_in_sight(file, found.sampler.node, loop)
    if name is not None:
        return _inserting(loop, f"{name}.set_epoch({epoch})", Applicability.SAFE)
    is_plain = isinstance(batches, ast.For) and isinstance(batches.iter, ast.Name)
    if is_plain and any(item is batches for item in ast.walk(loop)):
        assert isinstance(batches, ast.For)
        code = f"{ast.unparse(batches.iter)}.sampler.set_epoch({epoch})"
        return _inserting(loop, code, Applicability.UNSAFE)
    return None


def _name_in_sight(file: FileModel, made: ast.Call, loop: ast.For) -> str | None:
    """The only name of the sampler, if it is bound where the loop stands and to nothing else."""
    statement = file.index.parents.get(made)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return None
    target = statement.targets[0]
    bound = file.index.bindings(target.id, file.index.scope(loop))
    return target.id if bound == [target] and statement.lineno < loop.lineno else None


def _inserting(loop: ast.For, code: str, safety: Applicability) -> Repair:
    def set_epoch(editor: Editor) -> None:
        editor.insert_first(loop, code)

    return Repair("tell the sampler the epoch", safety, set_epoch)
