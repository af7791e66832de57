"""Mutations of training on several processes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.bench.mutations.operators import operator
from tests.bench.mutations.program import Edit, Mutation, Program, called_name

_MAIN_PROCESS = re.compile(
    r"^(not )?(\w+[.(])*\w*(rank\w*(\(\))? (==|<=) 0|is_main_process(\(\))?|is_master(\(\w*\))?"
    r"|is_rank_zero|is_rank0)$"
)


def _wraps(program: Program) -> Iterator[tuple[ast.stmt, str, ast.Call]]:
    """``model = DistributedDataParallel(model, ...)``, with the name and the call."""
    yield from program.assigned_calls("DistributedDataParallel", "DDP")


@operator("saving on all ranks", finds="save-all-ranks")
def saving_on_all_ranks(program: Program) -> Iterator[Mutation]:
    """The guard of the main process around ``torch.save`` becomes ``if True:``."""
    if not program.calls(program.tree, "DistributedDataParallel", "DDP", "init_process_group"):
        return
    for node in ast.walk(program.tree):
        if not isinstance(node, ast.If) or node.orelse:
            continue
        if not _MAIN_PROCESS.match(program.source(node.test)):
            continue
        saves = [
            call
            for item in node.body
            for call in program.calls(item, "save")
            if program.source(call.func) == "torch.save"
        ]
        if saves:
            yield Mutation(node.lineno, (program.replace(node.test, "True"),))


@operator("model moved after DDP", finds="ddp-move-after-wrap")
def moved_after_wrap(program: Program) -> Iterator[Mutation]:
    """``model = model.to(device)`` follows the wrapping."""
    for statement, name, _ in _wraps(program):
        if not name.isidentifier():
            continue
        moved = program.insert_after(statement, f"{name} = {name}.to('cuda')")
        yield Mutation(statement.lineno, (moved,))


@operator("batch norm made synchronous after DDP", finds="syncbn-after-ddp")
def syncbn_after_ddp(program: Program) -> Iterator[Mutation]:
    """``convert_sync_batchnorm`` follows the wrapping."""
    if "import torch\n" not in program.text:
        return
    for statement, name, _ in _wraps(program):
        if name.isidentifier():
            text = f"{name} = torch.nn.SyncBatchNorm.convert_sync_batchnorm({name})"
            yield Mutation(statement.lineno, (program.insert_after(statement, text),))


@operator("forward pass around DDP", finds="ddp-bypass-forward")
def around_ddp(program: Program) -> Iterator[Mutation]:
    """``model(x)`` of a training step in the function that wraps becomes ``model.module(x)``."""
    for statement, name, _ in _wraps(program):
        scope = program.scope(statement)
        for call in program.calls(scope):
            is_forward = isinstance(call.func, ast.Name) and call.func.id == name
            loops = program.loops(call) if is_forward else []
            if loops and program.calls(loops[0], "backward"):
                yield Mutation(call.lineno, (program.replace(call.func, f"{name}.module"),))


@operator("collective on the main process only", finds="collective-under-rank-guard")
def collective_guarded(program: Program) -> Iterator[Mutation]:
    """``dist.barrier()`` and ``dist.all_reduce(x)`` go under ``if dist.get_rank() == 0``."""
    for statement, call in program.statement_calls("barrier", "all_reduce", "broadcast"):
        module, name = program.receiver(call), called_name(call) or ""
        alone = len(program.calls(program.scope(statement), name)) == 1
        if module in ("dist", "torch.distributed") and alone:
            start = program.start(statement)
            guard = f"if {module}.get_rank() == 0: "
            yield Mutation(statement.lineno, (Edit(start, start, guard),))
