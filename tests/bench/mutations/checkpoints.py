"""Mutations of what is kept: best weights, averages, resumed state."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.bench.mutations.operators import operator
from tests.bench.mutations.program import Mutation, Program, called_name
from tests.bench.mutations.training import last_step_before

_BEST = re.compile(r"best", re.IGNORECASE)


@operator("best weights kept without a copy", finds="best-state-alias")
def best_state_alias(program: Program) -> Iterator[Mutation]:
    """``best = copy.deepcopy(model.state_dict())`` in a loop loses its ``deepcopy``."""
    for node, name, copied in program.assigned_calls("deepcopy"):
        text = program.source(copied.args[0]) if copied.args else ""
        if _BEST.search(name) and text.endswith(".state_dict()") and program.repeats(node):
            yield Mutation(node.lineno, (program.replace(copied, text),))


@operator("average updated before the step", finds="ema-update-cadence")
def average_updated_early(program: Program) -> Iterator[Mutation]:
    """The update of the average moves in front of the step of the same lap."""
    for statement, call in program.statement_calls("update", "update_parameters"):
        is_average = re.search(r"ema|average|swa", program.receiver(call), re.IGNORECASE)
        if not is_average or not program.repeats(statement):
            continue
        around = [statement, *(item for item in program.ancestors(statement) if _is_if(item))]
        steps = (last_step_before(program, item) for item in around if isinstance(item, ast.stmt))
        step = next((step for step in steps if step is not None), None)
        if step is not None:
            moved = program.insert_before(step, program.source(statement))
            yield Mutation(statement.lineno, (moved, program.remove(statement)))


def _is_if(node: ast.AST) -> bool:
    return isinstance(node, ast.If)


@operator("averaged weights not swapped back", finds="ema-swap-not-restored")
def average_not_restored(program: Program) -> Iterator[Mutation]:
    """The only ``restore`` of an average whose weights the file puts into the model."""
    for statement, call in program.statement_calls("restore", "restore_weights"):
        stores = program.calls(program.tree, "store", "apply_shadow", "copy_to", "apply")
        restores = program.calls(program.tree, "restore", "restore_weights")
        is_average = re.search(r"ema|average", program.receiver(call), re.IGNORECASE)
        if is_average and stores and len(restores) == 1 and program.repeats(statement):
            yield Mutation(statement.lineno, (program.remove(statement),))


@operator("optimizer not resumed", finds="resume-incomplete")
def optimizer_not_resumed(program: Program) -> Iterator[Mutation]:
    """The only line that loads the optimizer's state, beside one that loads the model's."""
    found = [
        statement
        for statement, call in program.statement_calls("load_state_dict")
        if program.names_like(r"optim", program.receiver(call))
    ]
    if len(found) != 1 or "load_optimizer" in program.text:
        return
    statement = found[0]
    block = program.block(statement)
    siblings = [
        program.receiver(item.value)
        for item in block
        if isinstance(item, ast.Expr)
        and isinstance(item.value, ast.Call)
        and called_name(item.value) == "load_state_dict"
    ]
    loads_model = any(program.names_like(r"model|net$", name) for name in siblings)
    is_saved = re.search(r"optim\w*\.state_dict\(\)", program.text)
    if loads_model and is_saved:
        yield Mutation(statement.lineno, (program.remove(statement),))
