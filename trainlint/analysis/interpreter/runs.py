"""Where code starts: the module itself, and every function that nothing in sight calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainlint.analysis.definitions import FunctionDefinition
from trainlint.analysis.interpreter.calls import run_body
from trainlint.analysis.interpreter.machine import RUN_BUDGET, Machine, Memory
from trainlint.analysis.interpreter.statements import run_block
from trainlint.analysis.relevance import leads_to_training
from trainlint.analysis.trace import Trace
from trainlint.analysis.values import FunctionValue, Value

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel


@dataclass(eq=False)
class Run:
    """One way that code of the file is reached.

    ``root`` is the function that the run starts in, None for the module itself. ``entered`` are all
    functions that ran in place. ``complete`` is False where the budget ran out. ``construction`` is
    what the constructor did when the root is a method, whose object the run finds ready. ``modes``
    keeps what was found out about train and eval mode, for the next rule that asks.
    """

    file: FileModel
    root: FunctionDefinition | None
    trace: Trace
    entered: frozenset[FunctionDefinition]
    complete: bool
    construction: Trace = field(default_factory=list)
    modes: list[object] | None = None


def runs_of(file: FileModel) -> list[Run]:
    """Runs that together reach every function of the file that could matter for training.

    None at all where the code nests deeper than this interpreter can follow.
    """
    try:
        return _runs_of(file)
    except RecursionError:
        return []


def _runs_of(file: FileModel) -> list[Run]:
    memory = Memory()
    module = _run_module(file, memory)
    found = [module]
    entered = set(module.entered)
    for function in _by_calls(file):
        if function not in entered and memory.budget > 0 and _matters(function):
            run = _run_function(file, function, memory)
            found.append(run)
            entered |= run.entered
    return found


def _run_module(file: FileModel, memory: Memory) -> Run:
    machine = Machine(file, memory)
    with machine.recording(machine.trace):
        run_block(machine, file.tree.body)
    return _finished(file, None, machine, memory)


def _run_function(file: FileModel, function: FunctionDefinition, memory: Memory) -> Run:
    machine = Machine(file, memory)
    receiver: Value | None = None
    if function.owner is not None and not function.is_static:
        receiver = machine.symbolic_instance(function.owner)
    environment = machine.symbolic_parameters(function, receiver)
    closure = machine.module_environment(file)
    run_body(machine, FunctionValue(function, receiver, closure), environment, function.node)
    return _finished(file, function, machine, memory)


def _finished(
    file: FileModel, root: FunctionDefinition | None, machine: Machine, memory: Memory
) -> Run:
    memory.budget -= min(RUN_BUDGET, memory.budget) - max(machine.budget, 0)
    construction: Trace = []
    if root is not None and root.owner is not None and not root.is_static:
        construction = machine.construction_of(root.owner)
    entered = frozenset(machine.entered)
    return Run(file, root, machine.trace, entered, not machine.exhausted, construction)


def _by_calls(file: FileModel) -> Iterator[FunctionDefinition]:
    """Functions that no call in the file names come first: they run the others in place."""
    called = {
        call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
        for call in file.nodes(ast.Call)
        if isinstance(call.func, (ast.Attribute, ast.Name))
    }
    definitions = [
        file.definition(node)
        for node in file.index.functions()
        if not isinstance(file.index.scope(node), (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    yield from (item for item in definitions if item.name not in called)
    yield from (item for item in definitions if item.name in called)


def _matters(function: FunctionDefinition) -> bool:
    """Constructors run where objects are made, not as starts of their own."""
    return function.name != "__init__" and leads_to_training(function)
