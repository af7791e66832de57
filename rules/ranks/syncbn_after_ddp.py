from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.blocks import neighbours, runs_before
from trainlint.analysis.wrapping import Wrapping, is_bound_between, wrappings
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import part_of_identifier

if TYPE_CHECKING:
    from trainlint.fixing import Editor

_CONVERSIONS = (
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
    "apex.parallel.convert_syncbn_model",
)


class SyncbnAfterDdp(Rule):
    """Batch norm is made synchronous after the model was wrapped in DDP.

    ## What it does
    Reports `SyncBatchNorm.convert_sync_batchnorm(model)`, and apex's counterpart, on a model that
    is already inside `DistributedDataParallel`.

    ## Why is this bad?
    The conversion puts new layers in place of the old ones. DDP has registered its hooks and
    buckets on the layers it was given: what replaces them later is not the model that it keeps in
    step across the processes.

    ## Example
    ```python
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    def build(model, rank):
        model = DistributedDataParallel(model.to(rank), device_ids=[rank])
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
        return model
    ```

    ## Use instead
    ```python
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    def build(model, rank):
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
        model = DistributedDataParallel(model.to(rank), device_ids=[rank])
        return model
    ```

    ## Fix safety
    The fix is safe: it moves the conversion before the wrapping, where the two follow each other
    and go by one name.

    ## References
    - [torch.nn.SyncBatchNorm.convert_sync_batchnorm](https://docs.pytorch.org/docs/stable/generated/torch.nn.SyncBatchNorm.html)
    """

    code = "TLR003"
    severity = Severity.ERROR
    scout = part_of_identifier("convert_sync") & part_of_identifier("DistributedDataParallel")
    help = "convert first, then move to the device, then wrap"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for conversion in file.calls(*_CONVERSIONS):
            if conversion.args and (wrapped := _wrapped_before(file, conversion)) is not None:
                yield self.report(
                    conversion,
                    f"`{ast.unparse(conversion.args[0])}` is already inside DDP "
                    f"(line {wrapped.call.lineno})",
                    repair=_repair(file, wrapped, conversion),
                )


def _wrapped_before(file: FileModel, conversion: ast.Call) -> Wrapping | None:
    """The wrapping of what is converted: of the wrapper itself, or of the model inside it."""
    converted = ast.unparse(conversion.args[0]).removesuffix(".module")
    for wrapping in wrappings(file):
        names = [name for name in (wrapping.wrapper, wrapping.model) if name is not None]
        same = next((name for name in names if ast.unparse(name) == converted), None)
        if same is None or not runs_before(file, wrapping.call, conversion):
            continue
        if not is_bound_between(file, same, file.index.statement(wrapping.call), conversion):
            return wrapping
    return None


def _repair(file: FileModel, wrapping: Wrapping, conversion: ast.Call) -> Repair | None:
    pair = neighbours(file, wrapping.call, conversion)
    if pair is None or wrapping.wrapper is None:
        return None
    wrap, convert = pair
    name = ast.unparse(wrapping.wrapper)
    is_one_name = (
        isinstance(convert, ast.Assign)
        and convert.value is conversion
        and [ast.unparse(target) for target in convert.targets] == [name]
        and ast.unparse(conversion.args[0]) == name
        and ast.unparse(wrapping.model).startswith(name)
    )
    is_adjacent = wrap.end_lineno is not None and convert.lineno - wrap.end_lineno <= 2
    if not (is_one_name and is_adjacent):
        return None

    def move(editor: Editor) -> None:
        editor.move_before(convert, wrap)

    return Repair("convert before wrapping", Applicability.SAFE, move)
