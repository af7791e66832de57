"""Mutations of gradient scaling, autocast and clipping."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.bench.mutations.operators import operator
from tests.bench.mutations.program import Mutation, Program, called_name
from tests.bench.mutations.training import SCALER, optimizer_statements

_CLIPS = ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm")


def _scaler_calls(program: Program, verb: str) -> Iterator[tuple[ast.Expr, ast.Call]]:
    for statement, call in program.statement_calls(verb):
        if program.names_like(SCALER, program.receiver(call)):
            yield statement, call


@operator("unscale_ removed", finds="clip-before-unscale")
def unscale_removed(program: Program) -> Iterator[Mutation]:
    """The only ``unscale_`` of a function that clips after it and steps with the scaler."""
    for statement, _ in _scaler_calls(program, "unscale_"):
        scope = program.scope(statement)
        clips = [call for call in program.calls(scope, *_CLIPS) if call.lineno > statement.lineno]
        if len(program.calls(scope, "unscale_")) == 1 and clips:
            yield Mutation(statement.lineno, (program.remove(statement),))


@operator("scaler.update removed", finds="scaler-update-missing")
def update_removed(program: Program) -> Iterator[Mutation]:
    """The only update of the scaler in the file."""
    found = list(_scaler_calls(program, "update"))
    if len(found) == 1 and program.repeats(found[0][0]):
        statement = found[0][0]
        if any(
            program.scope(step) is program.scope(statement)
            for step, _ in _scaler_calls(program, "step")
        ):
            yield Mutation(statement.lineno, (program.remove(statement),))


@operator("scaler.step replaced by optimizer.step", finds="scaler-scale-without-step")
def scaler_step_replaced(program: Program) -> Iterator[Mutation]:
    """The optimizer steps by itself on scaled gradients that nothing has unscaled."""
    for statement, call in _scaler_calls(program, "step"):
        scope = program.scope(statement)
        scales = program.calls(scope, "scale")
        if scales and len(call.args) == 1 and not program.calls(scope, "unscale_"):
            step = f"{program.source(call.args[0])}.step()"
            yield Mutation(statement.lineno, (program.replace(statement, step),))


@operator("scaler.step removed", finds="optimizer-step-missing")
def scaler_step_removed(program: Program) -> Iterator[Mutation]:
    """The only step of the file."""
    found = list(_scaler_calls(program, "step"))
    if len(found) == 1 and program.repeats(found[0][0]):
        statement, call = found[0]
        optimizer = program.source(call.args[0]) if call.args else ""
        steps = [
            program.receiver(other)
            for other in program.calls(program.tree, "step")
            if isinstance(other.func, ast.Attribute)
        ]
        if optimizer not in steps and program.calls(program.scope(statement), "backward"):
            yield Mutation(statement.lineno, (program.remove(statement),))


@operator("clip and step swapped", finds="clip-wrong-place")
def clip_and_step_swapped(program: Program) -> Iterator[Mutation]:
    """Both are statements of one block, and the gradients are cleared before the next backward."""
    for call in program.calls(program.tree, *_CLIPS):
        clip = program.statement(call)
        if not isinstance(clip, ast.Expr) or clip.value is not call:
            continue
        block = program.block(clip)
        after = block[block.index(clip) + 1 :]
        steps = [*optimizer_statements(program, program.scope(clip), "step")]
        steps += [statement for statement, _ in _scaler_calls(program, "step")]
        step = next((statement for statement in after if statement in steps), None)
        if step is not None and program.repeats(clip):
            yield Mutation(clip.lineno, program.swap(clip, step))


@operator("float16 instead of bfloat16", finds="fp16-autocast-no-scaler")
def float16(program: Program) -> Iterator[Mutation]:
    """The dtype of an autocast around training, in a file without a scaler."""
    if "scaler" in program.text.lower() or not program.calls(program.tree, "backward"):
        return
    for call in program.calls(program.tree, "autocast"):
        for node in [*call.args, *(item.value for item in call.keywords)]:
            if program.source(node) == "torch.bfloat16":
                yield Mutation(call.lineno, (program.replace(node, "torch.float16"),))


@operator("backward inside autocast", finds="autocast-wraps-backward")
def backward_in_autocast(program: Program) -> Iterator[Mutation]:
    """``backward()`` right behind an autocast block moves to its end."""
    for node in ast.walk(program.tree):
        if not isinstance(node, ast.With) or "autocast" not in program.source(
            node.items[0].context_expr
        ):
            continue
        block = program.block(node)
        after = block[block.index(node) + 1 :]
        for statement in after[:4]:
            is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
            if is_call and called_name(statement.value) == "backward":  # type: ignore[attr-defined]
                moved = program.insert_after(node.body[-1], program.source(statement))
                yield Mutation(statement.lineno, (moved, program.remove(statement)))


@operator("clipping before the backward pass", finds="clip-wrong-place")
def clip_before_backward(program: Program) -> Iterator[Mutation]:
    """Clipping right behind ``backward()`` moves in front of it."""
    for call in program.calls(program.tree, *_CLIPS):
        clip = program.statement(call)
        if not isinstance(clip, ast.Expr) or clip.value is not call:
            continue
        block = program.block(clip)
        before = block[: block.index(clip)]
        backwards = [
            item
            for item in before
            if isinstance(item, ast.Expr)
            and isinstance(item.value, ast.Call)
            and called_name(item.value) == "backward"
        ]
        if len(backwards) == 1 and len(program.calls(program.scope(clip), "backward")) == 1:
            moved = program.insert_before(backwards[0], program.source(clip))
            yield Mutation(clip.lineno, (moved, program.remove(clip)))
