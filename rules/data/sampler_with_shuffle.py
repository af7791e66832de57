from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.loaders import Loader
from trainlint.analysis.roles import Role, has_role
from trainlint.analysis.spelling import is_name_chain
from trainlint.analysis.values import Constant, Instance, Object, Value, options
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier_like, part_of_identifier

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class SamplerWithShuffle(Rule):
    """A `DataLoader` gets both a sampler and `shuffle=True`.

    ## What it does
    Reports loaders that are made with `shuffle=True` and a `sampler` or `batch_sampler` that is
    there at least on some path, such as only in distributed training.

    ## Why is this bad?
    The two exclude each other: torch raises a `ValueError` when the loader is made. Often only the
    run on several devices gets there.

    ## Example
    ```python
    from torch.utils.data import DataLoader, DistributedSampler

    def make_loader(dataset, distributed):
        sampler = DistributedSampler(dataset) if distributed else None
        return DataLoader(dataset, batch_size=64, shuffle=True, sampler=sampler)
    ```

    ## Use instead
    ```python
    from torch.utils.data import DataLoader, DistributedSampler

    def make_loader(dataset, distributed):
        sampler = DistributedSampler(dataset) if distributed else None
        return DataLoader(dataset, batch_size=64, shuffle=sampler is None, sampler=sampler)
    ```

    ## Fix safety
    The fix is safe: it shuffles where there is no sampler, and leaves the order to the sampler
    where there is one.

    ## References
    - [torch.utils.data.DataLoader](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader)
    """

    code = "TLD002"
    severity = Severity.ERROR
    scout = (
        part_of_identifier("sampler") & part_of_identifier("shuffle") & identifier_like(rb"Loader$")
    )
    help = "write `shuffle=sampler is None`: a sampler decides on the order itself"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        if not self.scout.suspects(file.source.glance):
            return
        for loader in file.loaders:
            kind = _given_sampler(loader)
            if loader.file is file and kind is not None and _certainly_shuffles(loader):
                sampler = loader.argument(kind)
                when = "" if _is_certain(sampler) else " where there is a sampler"
                yield self.report(
                    loader.expression("shuffle") or loader.call,
                    f"`shuffle=True` and `{kind}` exclude each other: this raises ValueError{when}",
                    repair=_repair(loader, kind),
                )


def _given_sampler(loader: Loader) -> str | None:
    """The argument through which the loader may get a sampler."""
    for kind in ("sampler", "batch_sampler"):
        if any(_is_sampler(option) for option in options(loader.argument(kind))):
            return kind
    return None


def _is_sampler(value: Value) -> bool:
    is_object = isinstance(value, (Object, Instance))
    return has_role(value, Role.SAMPLER) if isinstance(value, Object) else is_object


def _is_certain(value: Value | None) -> bool:
    return all(_is_sampler(option) for option in options(value))


def _certainly_shuffles(loader: Loader) -> bool:
    shuffle = loader.argument("shuffle")
    return isinstance(shuffle, Constant) and bool(shuffle.value)


def _repair(loader: Loader, kind: str) -> Repair | None:
    shuffle, sampler = loader.expression("shuffle"), loader.expression(kind)
    if shuffle is None or sampler is None or not isinstance(shuffle, ast.Constant):
        return None
    is_name = is_name_chain(sampler)
    is_keyword = any(item.value is shuffle for item in loader.call.keywords)
    if not is_name and not is_keyword:
        return None

    def decide(editor: Editor) -> None:
        if is_name:
            editor.replace(shuffle, f"{editor.source(sampler)} is None")
        else:
            editor.remove_argument(loader.call, "shuffle")

    return Repair("let the sampler decide on the order", Applicability.SAFE, decide)
