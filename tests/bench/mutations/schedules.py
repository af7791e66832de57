"""Mutations of when the learning-rate scheduler steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.bench.mutations.operators import operator
from tests.bench.mutations.program import Mutation, Program, called_name, keyword
from tests.bench.mutations.training import (
    SCHEDULER,
    is_conditional,
    last_step_before,
    optimizer_statements,
)


def _scheduler_steps(program: Program) -> Iterator[tuple[ast.Expr, ast.Call]]:
    for statement, call in program.statement_calls("step"):
        if program.names_like(SCHEDULER, program.receiver(call)):
            yield statement, call


def _made(program: Program, name: str) -> list[ast.Call]:
    """The calls whose results the file assigns to a name."""
    return [call for _, target, call in program.assigned_calls() if target == name]


@operator("scheduler and optimizer swapped", finds="scheduler-before-optimizer")
def scheduler_and_optimizer_swapped(program: Program) -> Iterator[Mutation]:
    """Both are statements of one block; the file makes the scheduler, of a class of torch."""
    for statement, call in _scheduler_steps(program):
        step = last_step_before(program, statement)
        made = [program.source(each.func) for each in _made(program, program.receiver(call))]
        is_torchs = any("lr_scheduler." in each or each.endswith("LR") for each in made)
        if step is not None and is_torchs and program.repeats(statement):
            yield Mutation(statement.lineno, program.swap(step, statement))


@operator("epoch schedule stepped on every batch", finds="scheduler-cadence-mismatch")
def epoch_schedule_each_batch(program: Program) -> Iterator[Mutation]:
    """A schedule that counts epochs moves into the loop over batches of the same epoch."""
    for statement, call in _scheduler_steps(program):
        loops = program.loops(statement)
        made = _made(program, program.receiver(call))
        if call.args or len(loops) != 1 or len(made) != 1 or not _counts_epochs(program, made[0]):
            continue
        inner = [node for node in program.block(statement) if isinstance(node, ast.For)]
        steps = optimizer_statements(program, program.scope(statement), "step")
        for loop in inner:
            inside = [each for each in steps if loop in program.loops(each)]
            if len(inside) == 1 and program.loops(inside[0])[0] is loop:
                moved = program.insert_after(inside[0], program.source(statement))
                yield Mutation(statement.lineno, (moved, program.remove(statement)))


def _counts_epochs(program: Program, made: ast.Call) -> bool:
    """Whether a schedule's length is given in epochs, or drops after a few."""
    name = called_name(made)
    if name in ("CosineAnnealingLR", "PolynomialLR", "LinearLR"):
        length = keyword(made, "T_max") or keyword(made, "total_iters")
        length = length or (made.args[1] if len(made.args) > 1 else None)
        return length is not None and program.source(length).lower().endswith("epochs")
    if name in ("StepLR", "MultiStepLR"):
        steps = keyword(made, "step_size") or keyword(made, "milestones")
        steps = steps or (made.args[1] if len(made.args) > 1 else None)
        if isinstance(steps, (ast.List, ast.Tuple)):
            steps = steps.elts[-1] if steps.elts else None
        return (
            isinstance(steps, ast.Constant) and isinstance(steps.value, int) and steps.value <= 50
        )
    return False


@operator("batch schedule stepped once an epoch", finds="scheduler-cadence-mismatch")
def batch_schedule_each_epoch(program: Program) -> Iterator[Mutation]:
    """``OneCycleLR`` moves behind the loop over batches."""
    for statement, call in _scheduler_steps(program):
        loops = program.loops(statement)
        made = _made(program, program.receiver(call))
        is_cycle = len(made) == 1 and called_name(made[0]) == "OneCycleLR"
        if is_cycle and len(loops) >= 2 and not is_conditional(program, statement):
            moved = program.insert_after(loops[0], program.source(statement))
            yield Mutation(statement.lineno, (moved, program.remove(statement)))


@operator("plateau scheduler without its metric", finds="plateau-no-metric")
def plateau_without_metric(program: Program) -> Iterator[Mutation]:
    """``scheduler.step(loss)`` loses its argument."""
    for statement, call in _scheduler_steps(program):
        made = _made(program, program.receiver(call))
        is_plateau = len(made) == 1 and called_name(made[0]) == "ReduceLROnPlateau"
        if is_plateau and len(call.args) == 1:
            step = f"{program.source(call.func)}()"
            yield Mutation(statement.lineno, (program.replace(statement, step),))
