from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.ranks import is_one_process, rank_guards, speaks_of_rank
from trainlint.analysis.receivers import assigned_values
from trainlint.analysis.trace import Branch, Call, Event, EventKind, Step, Trace, around, events
from trainlint.analysis.values import Object, Value
from trainlint.analysis.wrapping import DISTRIBUTED_DATA_PARALLEL
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import part_of_identifier, text

_OWN_FILE = re.compile(r"rank|process_index|\bgpu\b|worker|\bpid\b|hostname", re.IGNORECASE)
_SHARDED = re.compile(
    r"FullyShardedDataParallel|FSDP|distributed\.checkpoint|fully_shard|deepspeed"
)


class SaveAllRanks(Rule):
    """Every process writes the same checkpoint.

    ## What it does
    Reports `torch.save` in a program that trains with `DistributedDataParallel`, where nothing on
    the way, in any function or file, asks for the rank and the file is not one for each rank.

    ## Why is this bad?
    All processes open the same file and write it at once. What is left may be cut off or mixed,
    and a process that reads it meanwhile fails.

    ## Example
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def train(model, rank, epochs, one_epoch):
        model = DistributedDataParallel(model.to(rank), device_ids=[rank])
        for _ in range(epochs):
            one_epoch(model)
            torch.save(model.module.state_dict(), "last.pt")
    ```

    ## Use instead
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def train(model, rank, epochs, one_epoch):
        model = DistributedDataParallel(model.to(rank), device_ids=[rank])
        for _ in range(epochs):
            one_epoch(model)
            if rank == 0:
                torch.save(model.module.state_dict(), "last.pt")
    ```

    ## References
    - [Saving and loading checkpoints with DDP](https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html#save-and-load-checkpoints)
    """

    code = "TLR004"
    severity = Severity.WARNING
    scout = part_of_identifier("save") & text("torch.save", "save(")
    help = "write on rank 0 only, and let the others wait where they read the file"

    def check(self, file: FileModel) -> Iterator[Report]:
        if is_one_process(file):
            return
        reported: set[ast.AST] = set()
        for run in file.runs:
            wrapped = False
            for event in events(run.trace, EventKind.NEW, EventKind.SAVE):
                wrapped = wrapped or _is_wrapper(event.target)
                is_here = event.file is file and event.node not in reported
                if wrapped and is_here and _is_written_by_all(run.trace, event):
                    reported.add(event.node)
                    yield self.report(
                        event.node, "every process writes this file, all at the same time"
                    )


def _is_wrapper(value: Value | None) -> bool:
    return isinstance(value, Object) and value.dotted in DISTRIBUTED_DATA_PARALLEL


def _is_written_by_all(trace: Trace, event: Event) -> bool:
    call, file = event.node, event.file
    if (
        event.kind is not EventKind.SAVE
        or file.qualified(getattr(call, "func", call)) != "torch.save"
    ):
        return False
    if _SHARDED.search(file.source.text) or _is_own_file(file, call):
        return False
    path = around(trace, event)
    calls = [(step.file, step.node) for step in path if isinstance(step, Call)]
    if any(rank_guards(place, node) for place, node in [*calls, (file, call)]):
        return False
    return not any(_asks_rank(step) for step in path)


def _is_own_file(file: FileModel, call: ast.AST) -> bool:
    """Whether the path, or what the file assigns to the variables in it, tells ranks apart."""
    assert isinstance(call, ast.Call)
    path = call.args[1] if len(call.args) > 1 else call
    pieces: list[ast.AST] = [path]
    for name in ast.walk(path):
        if isinstance(name, (ast.Name, ast.Attribute)):
            pieces.extend(assigned_values(file, name))
    return any(_OWN_FILE.search(ast.unparse(piece)) for piece in pieces)


def _asks_rank(step: Step) -> bool:
    if isinstance(step, Branch):
        test = getattr(step.node, "test", None)
        return isinstance(test, ast.expr) and speaks_of_rank(test)
    return isinstance(step, Call) and bool(
        re.search(r"rank|master|main_process|once", step.function.name)
    )
