"""Mutations of train and eval mode, and of autograd's switches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.bench.mutations.operators import operator
from tests.bench.mutations.program import Edit, Function, Mutation, Program
from tests.bench.mutations.training import NETWORK

_EVALUATION = re.compile(r"eval|valid|test|infer|predict", re.IGNORECASE)


def _mode_calls(program: Program, mode: str) -> list[tuple[ast.Expr, ast.Call]]:
    return [
        (statement, call)
        for statement, call in program.statement_calls(mode)
        if not call.args and program.names_like(NETWORK, program.receiver(call))
    ]


def _trains(program: Program) -> bool:
    return bool(program.calls(program.tree, "backward"))


@operator("eval() removed", finds="eval-missing")
def eval_removed(program: Program) -> Iterator[Mutation]:
    """The only ``eval()`` of a file that trains, in front of a loop without gradients."""
    calls = _mode_calls(program, "eval")
    if len(calls) != 1 or not _trains(program):
        return
    statement, call = calls[0]
    scope = program.scope(statement)
    name = program.receiver(call)
    if isinstance(scope, ast.Module) or not _EVALUATION.search(scope.name):
        return
    loops = [
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.For)
        and node.lineno > statement.lineno
        and re.search(rf"\b{re.escape(name)}\(", program.source(node))
        and "backward" not in program.source(node)
    ]
    if loops:
        yield Mutation(statement.lineno, (program.remove(statement),))


@operator("train() removed", finds="train-not-restored")
def train_removed(program: Program) -> Iterator[Mutation]:
    """The only ``train()`` of a file whose loop over epochs also evaluates the same model."""
    trains, evals = _mode_calls(program, "train"), _mode_calls(program, "eval")
    if len(trains) != 1 or not evals or not _trains(program):
        return
    statement, call = trains[0]
    model = program.receiver(call)
    scope = program.scope(statement)
    trains_here = any(program.scope(item) is scope for item in program.calls(scope, "backward"))
    if trains_here and any(_evaluates_same(program, model, statement, *found) for found in evals):
        yield Mutation(statement.lineno, (program.remove(statement),))


def _evaluates_same(
    program: Program, model: str, training: ast.stmt, evaluation: ast.stmt, call: ast.Call
) -> bool:
    """Whether a loop that repeats ``training`` also switches its model to eval mode."""
    if not program.repeats(training):
        return False
    name = program.receiver(call)
    if name.startswith("self."):
        return name == model and program.repeats(evaluation)
    scope, own = program.scope(evaluation), program.loops(training)
    if scope is program.scope(training):
        return name == model and any(loop in program.loops(evaluation) for loop in own)
    callers = program.callers(scope)
    if own:
        callers = [each for each in callers if any(loop in own for loop in program.loops(each))]
    else:
        callers = [each for each in callers if program.loops(each)]
    return any(model in map(program.source, each.args) for each in callers)


def _evaluation_scopes(program: Program) -> Iterator[tuple[ast.With, Function]]:
    """``with torch.no_grad():`` around the loop over batches of an evaluation function."""
    for node in ast.walk(program.tree):
        if not isinstance(node, ast.With) or len(node.items) != 1:
            continue
        scope = program.scope(node)
        context = program.source(node.items[0].context_expr)
        if context not in ("torch.no_grad()", "torch.inference_mode()") or isinstance(
            scope, ast.Module
        ):
            continue
        loops = [item for item in ast.walk(node) if isinstance(item, ast.For)]
        evaluates = _EVALUATION.search(scope.name) and ".eval()" in program.source(scope)
        if loops and evaluates and not program.loops(node):
            yield node, scope


@operator("no_grad context removed", finds="eval-without-no-grad")
def no_grad_context_removed(program: Program) -> Iterator[Mutation]:
    """The scope becomes ``if True:``."""
    for node, scope in _evaluation_scopes(program):
        text = program.source(scope)
        switches = text.count("no_grad") + text.count("inference_mode")
        if switches == 1 and not scope.decorator_list and _uses_result(text):
            yield Mutation(node.lineno, (_if_true(program, node),))


def _uses_result(text: str) -> bool:
    """A model runs inside."""
    return re.search(r"\b(model|net|network|encoder|self)\(", text) is not None


def _if_true(program: Program, node: ast.With) -> Edit:
    start = program.start(node)
    end = program.end(node.items[0].context_expr)
    return Edit(start, end, "if True")


@operator("no_grad decorator removed", finds="eval-without-no-grad")
def no_grad_decorator_removed(program: Program) -> Iterator[Mutation]:
    """An evaluation function that loops over batches loses ``@torch.no_grad()``."""
    for node in ast.walk(program.tree):
        if not isinstance(node, ast.FunctionDef) or len(node.decorator_list) != 1:
            continue
        text = program.source(node)
        decorator = node.decorator_list[0]
        if program.source(decorator) not in ("torch.no_grad()", "torch.inference_mode()"):
            continue
        loops = any(isinstance(item, ast.For) for item in ast.walk(node))
        if loops and ".eval()" in text and _uses_result(text):
            start = program.start(decorator) - 1
            yield Mutation(node.lineno, (Edit(start, program.end(decorator), "# bare"),))


@operator("training attribute instead of eval()", finds="training-attr-assigned")
def training_attribute(program: Program) -> Iterator[Mutation]:
    """``model.eval()`` becomes ``model.training = False``."""
    for statement, call in _mode_calls(program, "eval"):
        text = f"{program.receiver(call)}.training = False"
        yield Mutation(statement.lineno, (program.replace(statement, text),))


@operator("no_grad without parentheses", finds="no-grad-uncalled")
def no_grad_uncalled(program: Program) -> Iterator[Mutation]:
    """``with torch.no_grad():`` becomes ``with torch.no_grad:``, in a file that imports torch."""
    if "import torch\n" not in program.text:
        return
    for node in ast.walk(program.tree):
        if isinstance(node, ast.With):
            for item in node.items:
                if program.source(item.context_expr) == "torch.no_grad()":
                    edit = program.replace(item.context_expr, "torch.no_grad")
                    yield Mutation(node.lineno, (edit,))


@operator("gradients switched off at import", finds="grad-disabled-globally")
def gradients_off_at_import(program: Program) -> Iterator[Mutation]:
    """A module that trains, and is no program of its own, switches gradients off."""
    if "__main__" in program.text or "import torch\n" not in program.text or not _trains(program):
        return
    if program.calls(program.tree, "set_grad_enabled", "enable_grad"):
        return
    definitions = (ast.FunctionDef, ast.ClassDef)
    first = next((item for item in program.tree.body if isinstance(item, definitions)), None)
    if first is not None:
        switch = program.insert_before(first, "torch.set_grad_enabled(False)")
        yield Mutation(first.lineno, (switch,))


@operator("train() moved out of the loop over epochs", finds="train-not-restored")
def train_once(program: Program) -> Iterator[Mutation]:
    """``train()`` runs once, although each epoch ends with an evaluation of the same model."""
    trains, evals = _mode_calls(program, "train"), _mode_calls(program, "eval")
    if len(trains) != 1 or not evals:
        return
    statement, call = trains[0]
    loops = program.loops(statement)
    if not loops or not program.calls(loops[-1], "backward"):
        return
    model = program.receiver(call)
    if any(_evaluates_same(program, model, statement, *found) for found in evals):
        moved = program.insert_before(loops[-1], program.source(statement))
        yield Mutation(statement.lineno, (moved, program.remove(statement)))
