"""Mutations of what goes into a loss."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.bench.mutations.operators import operator
from tests.bench.mutations.program import Mutation, Program, called_name


def loss_calls(program: Program, function: str, module: str) -> Iterator[ast.Call]:
    """Calls of a loss with two arguments: the function of torch, or a module made in this file."""
    made = {
        program.source(node.targets[0])
        for node in ast.walk(program.tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and called_name(node.value) == module
    }
    others = {
        program.source(node.targets[0])
        for node in ast.walk(program.tree)
        if isinstance(node, ast.Assign)
        and not (isinstance(node.value, ast.Call) and called_name(node.value) in (module, "to"))
    }
    for call in program.calls(program.tree):
        if len(call.args) < 2:
            continue
        text = program.source(call.func)
        is_function = text in (
            f"F.{function}",
            f"nn.functional.{function}",
            f"torch.nn.functional.{function}",
        )
        if is_function or (text in made and text not in others):
            yield call


@operator("softmax before cross entropy", finds="softmax-before-cross-entropy")
def softmax_before_cross_entropy(program: Program) -> Iterator[Mutation]:
    """The first argument goes through softmax."""
    yield from _wrapped(program, "cross_entropy", "CrossEntropyLoss", "torch.softmax({}, dim=1)")


@operator("sigmoid before BCE with logits", finds="sigmoid-before-bce-logits")
def sigmoid_before_bce(program: Program) -> Iterator[Mutation]:
    """The first argument goes through sigmoid."""
    names = ("binary_cross_entropy_with_logits", "BCEWithLogitsLoss")
    yield from _wrapped(program, *names, "torch.sigmoid({})")


@operator("argmax before the loss", finds="argmax-before-loss")
def argmax_before_loss(program: Program) -> Iterator[Mutation]:
    """Hard predictions, as floats, go into a loss that the same function differentiates."""
    names = ("cross_entropy", "CrossEntropyLoss")
    differentiated = {call.lineno for call in loss_calls(program, *names) if _trains(program, call)}
    for mutation in _wrapped(program, *names, "{}.argmax(1).float()"):
        if mutation.line in differentiated:
            yield mutation


def _trains(program: Program, call: ast.Call) -> bool:
    is_without_graph = any(
        isinstance(above, ast.With) and "no_grad" in program.source(above.items[0].context_expr)
        for above in program.ancestors(call)
    )
    return bool(program.calls(program.scope(call), "backward")) and not is_without_graph


def _wrapped(program: Program, function: str, module: str, around: str) -> Iterator[Mutation]:
    if "import torch\n" not in program.text:
        return
    for call in loss_calls(program, function, module):
        if isinstance(call.args[0], (ast.Name, ast.Call, ast.Attribute, ast.Subscript)):
            text = around.format(program.source(call.args[0]))
            yield Mutation(call.lineno, (program.replace(call.args[0], text),))


@operator("log_softmax becomes softmax before NLL", finds="nll-without-log")
def log_dropped(program: Program) -> Iterator[Mutation]:
    """The only ``log_softmax`` of a file whose loss is NLL."""
    logs = program.calls(program.tree, "log_softmax", "LogSoftmax")
    losses = program.calls(program.tree, "nll_loss", "NLLLoss")
    if len(logs) == 1 and losses:
        name = "softmax" if called_name(logs[0]) == "log_softmax" else "Softmax"
        text = program.source(logs[0].func)
        text = text[: -len(called_name(logs[0]) or "")] + name
        yield Mutation(logs[0].lineno, (program.replace(logs[0].func, text),))


@operator("KL divergence of probabilities", finds="kl-div-input-not-log")
def kl_without_log(program: Program) -> Iterator[Mutation]:
    """``F.kl_div(F.log_softmax(x), ...)`` gets ``F.softmax(x)``."""
    for call in program.calls(program.tree, "kl_div"):
        first = call.args[0] if call.args else None
        if isinstance(first, ast.Call) and called_name(first) == "log_softmax":
            text = program.source(first.func)[: -len("log_softmax")] + "softmax"
            yield Mutation(call.lineno, (program.replace(first.func, text),))


@operator("loss arguments swapped", finds="loss-arg-swap")
def arguments_swapped(program: Program) -> Iterator[Mutation]:
    """Target first, in a loss that is not symmetric."""
    losses = (
        ("cross_entropy", "CrossEntropyLoss"),
        ("nll_loss", "NLLLoss"),
        ("binary_cross_entropy", "BCELoss"),
        ("binary_cross_entropy_with_logits", "BCEWithLogitsLoss"),
    )
    for names in losses:
        for call in loss_calls(program, *names):
            one, other = call.args[:2]
            edits = (
                program.replace(one, program.source(other)),
                program.replace(other, program.source(one)),
            )
            yield Mutation(call.lineno, edits)
