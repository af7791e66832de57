"""Mutations of the order of backward pass, step and clearing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.bench.mutations.operators import operator
from tests.bench.mutations.program import LoopNode, Mutation, Program, keyword
from tests.bench.mutations.training import (
    BACKWARD,
    NETWORK,
    Update,
    call_of,
    is_conditional,
    losses,
    modulo_guard,
    updates,
)

_MICRO_BATCHES = re.compile(r"accum|micro|grad\w*_steps", re.IGNORECASE)
_OTHER_CLEARING = ("zero_grad", "zero_grads", "optimizer_zero_grad", "clear_grad")


def _clears_otherwise(program: Program, statement: ast.Expr) -> bool:
    """Whether anything else in the file clears gradients."""
    mine = call_of(statement)
    return ".grad = None" in program.text or any(
        call is not mine for call in program.calls(program.tree, *_OTHER_CLEARING)
    )


@operator("zero_grad removed", finds="zero-grad-missing")
def zero_grad_removed(program: Program) -> Iterator[Mutation]:
    """One optimizer, cleared at one place."""
    for update in updates(program):
        if not _clears_otherwise(program, update.zero_grad):
            yield Mutation(update.zero_grad.lineno, (program.remove(update.zero_grad),))


@operator("zero_grad once an epoch", finds="zero-grad-per-epoch")
def zero_grad_per_epoch(program: Program) -> Iterator[Mutation]:
    """Clearing moves in front of the loop over batches, inside that over epochs."""
    for update in updates(program):
        loops = program.loops(update.zero_grad)
        if (
            len(loops) >= 2
            and loops == program.loops(update.step)
            and not is_conditional(program, update.step)
            and not is_conditional(program, update.zero_grad)
            and not _clears_otherwise(program, update.zero_grad)
        ):
            moved = program.insert_before(loops[0], program.source(update.zero_grad))
            yield Mutation(loops[0].lineno, (moved, program.remove(update.zero_grad)))


@operator("zero_grad between backward and step", finds="zero-grad-between")
def zero_grad_between(program: Program) -> Iterator[Mutation]:
    """Clearing moves directly in front of the step."""
    for update in updates(program):
        block = program.block(update.step)
        if update.backward not in block or block.index(update.backward) > block.index(update.step):
            continue
        moved = program.insert_before(update.step, program.source(update.zero_grad))
        yield Mutation(update.step.lineno, (moved, program.remove(update.zero_grad)))


@operator("step and backward swapped", finds="zero-grad-between")
def step_and_backward_swapped(program: Program) -> Iterator[Mutation]:
    """The step uses what the lap before left, which is cleared by then."""
    for update in updates(program):
        block = program.block(update.step)
        is_sibling = update.backward in block and update.zero_grad in block
        if is_sibling and block.index(update.backward) < block.index(update.step):
            yield Mutation(update.step.lineno, program.swap(update.backward, update.step))


@operator("optimizer.step removed", finds="optimizer-step-missing")
def step_removed(program: Program) -> Iterator[Mutation]:
    """The only step of the only optimizer that the function clears."""
    for update in updates(program):
        optimizer = program.receiver(call_of(update.step))
        scaled = [call for call in program.calls(program.tree, "step") if call.args]
        others = [
            call
            for call in program.calls(program.tree, "step")
            if call is not call_of(update.step)
            and isinstance(call.func, ast.Attribute)
            and program.receiver(call) == optimizer
        ]
        if not others and not any(optimizer == program.source(call.args[0]) for call in scaled):
            yield Mutation(update.step.lineno, (program.remove(update.step),))


@operator("clearing on every micro-batch", finds="zero-grad-breaks-accumulation")
def clearing_every_micro_batch(program: Program) -> Iterator[Mutation]:
    """Clearing moves from beside the accumulated step into the loop over micro-batches."""
    for update in updates(program):
        loop = _micro_batch_loop(program, update)
        if loop is not None:
            moved = program.insert_before(loop.body[0], program.source(update.zero_grad))
            yield Mutation(loop.lineno, (moved, program.remove(update.zero_grad)))


def _micro_batch_loop(program: Program, update: Update) -> LoopNode | None:
    """The loop whose laps one step waits for.

    Either the step and the clearing share an ``if (i + 1) % k == 0`` in it, or both stand around
    it, in the body of the next loop.
    """
    guard = modulo_guard(program, update.step)
    loops = program.loops(update.backward)
    if guard is not None and modulo_guard(program, update.zero_grad) is guard:
        around = program.loops(guard)
        return around[0] if around and around[0] in loops else None
    is_around = len(loops) >= 2 and program.loops(update.step) == loops[1:]
    is_cleared_around = program.loops(update.zero_grad) == loops[1:]
    return loops[0] if is_around and is_cleared_around else None


@operator("graph retained", finds="retain-graph-misuse")
def graph_retained(program: Program) -> Iterator[Mutation]:
    """The only backward pass of a function that also runs the forward pass, in a loop."""
    for backward, call in program.statement_calls("backward"):
        scope = program.scope(backward)
        alone = len(program.calls(scope, *BACKWARD, "grad")) == 1
        loops = program.loops(backward)
        if alone and not call.keywords and not call.args and loops and _runs_model(program, loops):
            edit = program.with_argument(call, "retain_graph=True")
            yield Mutation(backward.lineno, (edit,))


def _runs_model(program: Program, loops: list[LoopNode]) -> bool:
    """Whether the innermost loop calls something that is named like a network."""
    return any(
        program.names_like(NETWORK, program.source(call.func).removesuffix(".forward"))
        for call in program.calls(loops[0])
    )


@operator(".item() dropped from a running total", finds="loss-accumulate-graph")
def item_dropped(program: Program) -> Iterator[Mutation]:
    """``total += loss.item()`` or ``history.append(loss.item())`` of a differentiated loss."""
    for call in program.calls(program.tree, "item", "detach", "float"):
        scope, statement = program.scope(call), program.statement(call)
        subject = _converted(call)
        if subject is None or subject.id not in losses(program, scope):
            continue
        if not program.loops(statement) or not _keeps(program, statement, call):
            continue
        yield Mutation(call.lineno, (program.replace(call, subject.id),))


def _converted(call: ast.Call) -> ast.Name | None:
    """The name whose value ``name.item()`` or ``float(name)`` reads."""
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        return call.func.value if not call.args else None
    is_float = isinstance(call.func, ast.Name) and call.func.id == "float" and len(call.args) == 1
    return call.args[0] if is_float and isinstance(call.args[0], ast.Name) else None


def _keeps(program: Program, statement: ast.stmt, call: ast.Call) -> bool:
    """Whether a statement adds the value to a total, or appends it to a list, made before the loop.

    Nothing else may convert the value on its way there.
    """
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        kept: ast.expr = statement.target
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        appending = statement.value
        if not isinstance(appending.func, ast.Attribute) or appending.func.attr != "append":
            return False
        kept = appending.func.value
    else:
        return False
    between = [above for above in program.ancestors(call) if isinstance(above, ast.Call)]
    if any(getattr(above.func, "attr", None) != "append" for above in between):
        return False
    if not isinstance(kept, ast.Name):
        return False
    loop = program.loops(statement)[0]
    made = [
        node
        for node in ast.walk(program.scope(statement))
        if isinstance(node, ast.Name) and node.id == kept.id and isinstance(node.ctx, ast.Store)
    ]
    inside = [node for node in made if loop in program.loops(node)]
    return min(node.lineno for node in made) < loop.lineno and all(
        isinstance(program.parent(node), ast.AugAssign) for node in inside
    )


@operator("optimizer made in the loop over epochs", finds="optimizer-recreated-in-loop")
def optimizer_in_loop(program: Program) -> Iterator[Mutation]:
    """An optimizer made in front of the loop is made again in each epoch.

    Not SGD without momentum: it keeps nothing that could be lost.
    """
    for statement, name, call in program.assigned_calls():
        made = program.source(call.func)
        if not made.startswith(("torch.optim.", "optim.")) or "lr_scheduler" in made:
            continue
        if made.endswith(".SGD") and keyword(call, "momentum") is None:
            continue
        block = program.block(statement)
        for after in block[block.index(statement) + 1 :]:
            if not isinstance(after, ast.For) or "epoch" not in program.source(after.target):
                continue
            if f"{name}.step()" in program.source(after):
                again = program.insert_before(after.body[0], program.source(statement))
                if any(isinstance(inner, ast.For) for inner in ast.walk(after) if inner != after):
                    yield Mutation(after.lineno, (again,))


@operator("training under no_grad", finds="training-under-no-grad")
def training_under_no_grad(program: Program) -> Iterator[Mutation]:
    """A function that computes a loss and goes back from it gets ``@torch.no_grad()``.

    One that is handed the loss, or takes it from what it is handed, would go back through a graph
    that was built outside: the decorator does no harm there.
    """
    if "import torch\n" not in program.text:
        return
    for node in ast.walk(program.tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        own = [call for call in program.calls(node, "backward") if program.scope(call) is node]
        switches = ("enable_grad", "set_grad_enabled", "no_grad", "checkpoint")
        names = losses(program, node)
        makes_loss = any(
            isinstance(item, (ast.Assign, ast.AugAssign))
            and any(isinstance(part, (ast.Call, ast.BinOp)) for part in ast.walk(item.value))
            and any(isinstance(name, ast.Name) and name.id in names for name in _targets(item))
            for item in ast.walk(node)
        )
        if own and makes_loss and not program.calls(node, *switches):
            yield Mutation(node.lineno, (program.insert_before(node, "@torch.no_grad()"),))


def _targets(statement: ast.Assign | ast.AugAssign) -> list[ast.AST]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return [part for target in targets for part in ast.walk(target)]


@operator("parentheses dropped", finds="uncalled-method")
def parentheses_dropped(program: Program) -> Iterator[Mutation]:
    """``optimizer.step()`` and its like become an attribute that is read and thrown away."""
    for statement, call in program.statement_calls(
        "step", "zero_grad", "backward", "eval", "train", "update"
    ):
        assert isinstance(call.func, ast.Attribute)
        receiver = program.receiver(call)
        if call.func.attr in ("step", "zero_grad"):
            belongs = program.names_like(r"optim|sched|scaler", receiver)
        elif call.func.attr == "update":
            belongs = program.names_like(r"scaler", receiver)
        elif call.func.attr == "backward":
            belongs = receiver in losses(program, program.scope(statement))
        else:
            belongs = program.names_like(r"model|^net$|network|encoder|decoder|generator", receiver)
        if belongs and not call.args and not call.keywords:
            yield Mutation(call.lineno, (program.replace(call, program.source(call.func)),))


@operator("loss division dropped", finds="accum-loss-not-scaled")
def loss_division_dropped(program: Program) -> Iterator[Mutation]:
    """The division of a loss by the number of micro-batches that a step waits for."""
    for backward, call in program.statement_calls(*BACKWARD):
        scope = program.scope(backward)
        loops = program.loops(backward)
        steps = [
            program.statement(step)
            for step in program.calls(scope, "step")
            if program.names_like(r"optim|^opt$|scaler", program.source(step.func)[: -len(".step")])
        ]
        if len(program.calls(scope, *BACKWARD)) != 1 or not loops:
            continue
        if any(
            modulo_guard(program, step) or program.loops(step) == loops[1:] != [] for step in steps
        ):
            for name in losses(program, scope):
                yield from _undivided(program, loops[0], name)
            yield from _undivided_where_used(program, call)


def _undivided(program: Program, loop: ast.AST, name: str) -> Iterator[Mutation]:
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
            target = node.targets[0]
            is_loss = isinstance(target, ast.Name) and target.id == name
            if is_loss and _counts_micro_batches(program, node.value):
                whole = program.source(node.value.left)
                yield Mutation(node.lineno, (program.replace(node.value, whole),))
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            is_loss = isinstance(node.target, ast.Name) and node.target.id == name
            if is_loss and _MICRO_BATCHES.search(program.source(node.value)):
                yield Mutation(node.lineno, (program.remove(node),))


def _undivided_where_used(program: Program, backward: ast.Call) -> Iterator[Mutation]:
    """``(loss / k).backward()``, ``scaler.scale(loss / k).backward()``, ``backward(loss / k)``."""
    for node in ast.walk(backward):
        if isinstance(node, ast.BinOp) and _counts_micro_batches(program, node):
            whole = program.source(node.left)
            yield Mutation(node.lineno, (program.replace(node, whole),))


def _counts_micro_batches(program: Program, node: ast.BinOp) -> bool:
    """Whether a division is by something named for accumulation, not by a number of tokens."""
    divides = isinstance(node.op, ast.Div)
    return divides and _MICRO_BATCHES.search(program.source(node.right)) is not None
