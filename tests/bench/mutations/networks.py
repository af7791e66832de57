"""Mutations of modules: how they are built, and what their forward pass does."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.bench.mutations.operators import operator
from tests.bench.mutations.program import Mutation, Program, called_name, keyword


def _module_classes(program: Program) -> Iterator[ast.ClassDef]:
    for node in ast.walk(program.tree):
        if isinstance(node, ast.ClassDef):
            bases = [program.source(base) for base in node.bases]
            if any(base in ("nn.Module", "torch.nn.Module") for base in bases):
                yield node


def _method(cls: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    found = (item for item in cls.body if isinstance(item, ast.FunctionDef) and item.name == name)
    return next(found, None)


@operator("ModuleList becomes a list", finds="modules-in-plain-list")
def plain_list(program: Program) -> Iterator[Mutation]:
    """``self.layers = nn.ModuleList([...])``, whose layers ``forward`` calls."""
    for cls in _module_classes(program):
        for call in program.calls(cls, "ModuleList"):
            statement = program.statement(call)
            if not isinstance(statement, ast.Assign) or statement.value is not call:
                continue
            is_display = call.args and isinstance(call.args[0], (ast.List, ast.ListComp))
            if is_display and program.source(statement.targets[0]).startswith("self."):
                text = program.source(call.args[0])
                yield Mutation(statement.lineno, (program.replace(call, text),))


@operator("one layer repeated", finds="module-list-multiplication")
def repeated_layer(program: Program) -> Iterator[Mutation]:
    """``[Layer(...) for _ in range(n)]`` becomes ``[Layer(...)] * n``."""
    for cls in _module_classes(program):
        for call in program.calls(cls, "ModuleList"):
            made = call.args[0] if call.args else None
            if not isinstance(made, ast.ListComp) or len(made.generators) != 1:
                continue
            generator, layer = made.generators[0], made.elt
            counts = isinstance(generator.iter, ast.Call) and called_name(generator.iter) == "range"
            if not counts or generator.ifs or not isinstance(layer, ast.Call):
                continue
            assert isinstance(generator.iter, ast.Call)
            index = program.source(generator.target)
            uses_index = any(
                isinstance(node, ast.Name) and node.id == index for node in ast.walk(layer)
            )
            if len(generator.iter.args) == 1 and not uses_index:
                count = program.source(generator.iter.args[0])
                text = f"[{program.source(layer)}] * ({count})"
                yield Mutation(made.lineno, (program.replace(made, text),))


@operator("super().__init__() removed", finds="missing-super-init")
def super_init_removed(program: Program) -> Iterator[Mutation]:
    """A module that assigns layers to itself."""
    for cls in _module_classes(program):
        constructor = _method(cls, "__init__")
        if constructor is None or len(cls.bases) != 1:
            continue
        for statement in constructor.body:
            text = program.source(statement)
            calls_base = isinstance(statement, ast.Expr) and text.startswith("super(")
            if calls_base and any(_registers(program, item) for item in constructor.body):
                yield Mutation(statement.lineno, (program.remove(statement),))


def _registers(program: Program, statement: ast.stmt) -> bool:
    """``self.layer = nn.Linear(...)``."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return False
    made = program.source(statement.value.func)
    is_layer = made.startswith(("nn.", "torch.nn.")) and called_name(statement.value) != "Parameter"
    return is_layer and program.source(statement.targets[0]).startswith("self.")


@operator("functional dropout without `training`", finds="functional-dropout-no-training")
def dropout_without_training(program: Program) -> Iterator[Mutation]:
    """``F.dropout(x, p, training=self.training)`` in a forward pass loses its argument."""
    for call in program.calls(program.tree, "dropout"):
        training = keyword(call, "training")
        if program.source(call.func) not in ("F.dropout", "nn.functional.dropout"):
            continue
        if training is not None and program.source(training) == "self.training":
            edit = program.without_argument(call, "training")
            if edit is not None:
                yield Mutation(call.lineno, (edit,))


@operator("layer made in forward", finds="module-in-forward")
def layer_in_forward(program: Program) -> Iterator[Mutation]:
    """``self.dropout(x)`` becomes ``nn.Dropout(0.5)(x)``."""
    for cls in _module_classes(program):
        forward = _method(cls, "forward")
        if forward is None or "nn." not in program.source(cls):
            continue
        for call in program.calls(forward):
            if program.source(call.func) in ("self.dropout", "self.drop"):
                yield Mutation(call.lineno, (program.replace(call.func, "nn.Dropout(0.5)"),))


@operator("requires_grad misspelled", finds="requires-grad-typo")
def requires_grad_typo(program: Program) -> Iterator[Mutation]:
    """``parameter.requires_grad = False`` becomes ``require_grad``."""
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            target = node.targets[0]
            if target.attr == "requires_grad" and isinstance(node.value, ast.Constant):
                text = f"{program.source(target.value)}.require_grad"
                yield Mutation(node.lineno, (program.replace(target, text),))


@operator("result of .to() thrown away", finds="to-result-discarded")
def to_discarded(program: Program) -> Iterator[Mutation]:
    """``images = images.to(device)`` of a batch becomes ``images.to(device)``."""
    for node in ast.walk(program.tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        call = node.value
        moves = called_name(call) in ("to", "cuda") and isinstance(call.func, ast.Attribute)
        if not moves or not isinstance(node.targets[0], ast.Name):
            continue
        is_same = program.receiver(call) == node.targets[0].id
        if is_same and any(_walks(loop, node.targets[0].id) for loop in program.loops(node)):
            yield Mutation(node.lineno, (program.replace(node, program.source(call)),))


def _walks(loop: ast.AST, name: str) -> bool:
    """Whether a loop over a loader binds a name, and others: a batch may move itself in place."""
    is_pair = isinstance(loop, ast.For) and isinstance(loop.target, ast.Tuple)
    if not isinstance(loop, ast.For) or not is_pair or "loader" not in ast.unparse(loop.iter):
        return False
    return any(isinstance(item, ast.Name) and item.id == name for item in ast.walk(loop.target))


@operator("parameter moved when it is made", finds="parameter-moved-nonleaf")
def parameter_moved(program: Program) -> Iterator[Mutation]:
    """``self.x = nn.Parameter(...)`` becomes ``nn.Parameter(...).cuda()``."""
    for statement, name, call in program.assigned_calls("Parameter"):
        is_torch = program.source(call.func) in ("nn.Parameter", "torch.nn.Parameter")
        learns = keyword(call, "requires_grad") is None
        if is_torch and learns and name.startswith("self."):
            text = f"{program.source(call)}.cuda()"
            yield Mutation(statement.lineno, (program.replace(call, text),))
