"""Statements: they bind names, fork and join paths, and give the trace its shape."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from trainlint.analysis.interpreter.conditions import assumptions, truth
from trainlint.analysis.interpreter.environment import joined
from trainlint.analysis.interpreter.expressions import bind, evaluate, mix
from trainlint.analysis.interpreter.loops import run_for, run_while
from trainlint.analysis.interpreter.machine import Machine
from trainlint.analysis.interpreter.scopes import GRAD_SWITCHES
from trainlint.analysis.interpreter.with_blocks import run_with
from trainlint.analysis.trace import Assumptions, Attempt, Branch, EventKind, Jump, Trace
from trainlint.analysis.values import (
    ClassValue,
    Constant,
    Context,
    FunctionValue,
    Group,
    Unknown,
    Value,
    is_listed,
)

_LEAVES_PROGRAM = frozenset({"sys.exit", "builtins.exit", "builtins.quit", "os._exit", "os.abort"})


def run_block(machine: Machine, statements: Sequence[ast.stmt]) -> bool:
    """Run statements in order; True if the path surely ends inside (return, raise, break)."""
    for statement in statements:
        machine.budget -= 1
        handler = _HANDLERS.get(type(statement))
        if handler is not None and handler(machine, statement):
            return True
    return False


def _expression(machine: Machine, node: ast.stmt) -> bool:
    assert isinstance(node, ast.Expr)
    value = evaluate(machine, node.value)
    if isinstance(value, Context) and isinstance(node.value, ast.Call):
        _switch_gradients(machine, value)
    if (
        isinstance(node.value, ast.Call)
        and machine.file.qualified(node.value.func) in _LEAVES_PROGRAM
    ):
        machine.add(Jump.RAISE)
        return True
    return False


def _switch_gradients(machine: Machine, context: Context) -> None:
    """``torch.set_grad_enabled(False)`` as a statement holds from here on."""
    if machine.file.qualified(getattr(context.node, "func", context.node)) in GRAD_SWITCHES:
        machine.emit(EventKind.GRAD_MODE, context.node, context.subject)


def _assign(machine: Machine, node: ast.stmt) -> bool:
    assert isinstance(node, ast.Assign)
    value = evaluate(machine, node.value)
    for target in node.targets:
        bind(machine, target, value)
    return False


def _annotated(machine: Machine, node: ast.stmt) -> bool:
    assert isinstance(node, ast.AnnAssign)
    if node.value is not None:
        bind(machine, node.target, evaluate(machine, node.value))
    return False


def _augmented(machine: Machine, node: ast.stmt) -> bool:
    assert isinstance(node, ast.AugAssign)
    old, new = evaluate(machine, node.target), evaluate(machine, node.value)
    if isinstance(old, Group):
        added = new.elements if isinstance(new, Group) else [new]
        old.elements.extend(added)
        if old.keys is not None:
            known = new.keys if isinstance(new, Group) else None
            old.keys.extend(known if known is not None else [Unknown()] * len(added))
        old.open = True
        old.last_is_sure = is_listed(new) and machine.conditional_depth <= old.depth
        return False
    mixed = mix(old, new)
    if isinstance(node.target, (ast.Name, ast.Attribute)):
        mixed.hint = node.target.id if isinstance(node.target, ast.Name) else node.target.attr
    bind(machine, node.target, mixed)
    return False


def _return(machine: Machine, node: ast.stmt) -> bool:
    assert isinstance(node, ast.Return)
    value = evaluate(machine, node.value) if node.value is not None else Constant(None)
    machine.frame.returned.append(value)
    machine.add(Jump.RETURN)
    return True


def _raise(machine: Machine, node: ast.stmt) -> bool:
    assert isinstance(node, ast.Raise)
    if node.exc is not None:
        evaluate(machine, node.exc)
    machine.add(Jump.RAISE)
    return True


def _break(machine: Machine, node: ast.stmt) -> bool:
    machine.add(Jump.BREAK)
    return True


def _continue(machine: Machine, node: ast.stmt) -> bool:
    machine.add(Jump.CONTINUE)
    return True


def _if(machine: Machine, node: ast.stmt) -> bool:
    assert isinstance(node, ast.If)
    if _is_main_guard(node.test):
        return run_block(machine, node.body)
    ways: list[tuple[Assumptions, Sequence[ast.stmt]]] = []
    with machine.noting():
        evaluate(machine, node.test)
        known = truth(machine, node.test)
        if known is None:
            ways.append((assumptions(machine, node.test, True), node.body))
            ways.append((assumptions(machine, node.test, False), node.orelse))
    if known is not None:
        return run_block(machine, node.body if known else node.orelse)
    return run_ways(machine, node, ways)


def run_ways(
    machine: Machine, node: ast.AST, ways: list[tuple[Assumptions, Sequence[ast.stmt]]]
) -> bool:
    """Run alternatives from the same start and join what they bind."""
    environment = machine.frame.environment
    before = dict(environment.values)
    branch = Branch(node, [])
    survivors: list[dict[str, Value]] = []
    for assumed, body in ways:
        environment.values = dict(before)
        trace: Trace = []
        with machine.recording(trace), machine.conditionally():
            ended = run_block(machine, body)
        branch.ways.append((assumed, trace))
        if not ended:
            survivors.append(environment.values)
    environment.values = joined(survivors) if survivors else dict(before)
    if any(trace for _, trace in branch.ways):
        machine.add(branch)
    return not survivors


def _is_main_guard(test: ast.expr) -> bool:
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
        and isinstance(test.ops[0], ast.Eq)
    )


def _try(machine: Machine, node: ast.stmt) -> bool:
    assert isinstance(node, ast.Try) or type(node).__name__ == "TryStar"
    attempt = Attempt()
    environment = machine.frame.environment
    before = dict(environment.values)
    with machine.recording(attempt.body):
        ended = run_block(machine, node.body)  # type: ignore[attr-defined]
    with machine.recording(attempt.orelse):
        ended = (not ended and run_block(machine, node.orelse)) or ended  # type: ignore[attr-defined]
    survivors = [] if ended else [environment.values]
    for handler in node.handlers:  # type: ignore[attr-defined]
        environment.values = joined([dict(environment.values), before])
        trace: Trace = []
        with machine.recording(trace), machine.conditionally():
            if handler.name:
                environment.assign(handler.name, Unknown(hint=handler.name))
            if not run_block(machine, handler.body):
                survivors.append(environment.values)
        attempt.handlers.append(trace)
    environment.values = joined(survivors) if survivors else before
    with machine.recording(attempt.final):
        final_ended = run_block(machine, node.finalbody)  # type: ignore[attr-defined]
    machine.add(attempt)
    return final_ended or not survivors


def _match(machine: Machine, node: ast.stmt) -> bool:
    assert isinstance(node, ast.Match)
    evaluate(machine, node.subject)
    ways: list[tuple[Assumptions, Sequence[ast.stmt]]] = [((), case.body) for case in node.cases]
    return run_ways(machine, node, [*ways, ((), [])])


def _function(machine: Machine, node: ast.stmt) -> bool:
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    definition = machine.file.definition(node)
    value = FunctionValue(definition, closure=machine.frame.environment)
    machine.frame.environment.assign(node.name, value)
    return False


def _class(machine: Machine, node: ast.stmt) -> bool:
    assert isinstance(node, ast.ClassDef)
    definition = machine.file.classes.get(node.name)
    if definition is not None:
        machine.frame.environment.assign(node.name, ClassValue(definition))
    return False


def _shared(machine: Machine, node: ast.stmt) -> bool:
    assert isinstance(node, (ast.Global, ast.Nonlocal))
    environment = machine.frame.environment
    target = environment.outermost()
    if isinstance(node, ast.Nonlocal) and environment.parent is not None:
        target = environment.parent
    for name in node.names:
        environment.shared[name] = target
    return False


def _assert(machine: Machine, node: ast.stmt) -> bool:
    assert isinstance(node, ast.Assert)
    evaluate(machine, node.test)
    return False


_HANDLERS: dict[type[ast.stmt], Callable[[Machine, ast.stmt], bool]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.If: _if,
    ast.For: run_for,
    ast.AsyncFor: run_for,
    ast.While: run_while,
    ast.With: run_with,
    ast.AsyncWith: run_with,
    ast.Try: _try,
    ast.Match: _match,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Global: _shared,
    ast.Nonlocal: _shared,
    ast.Assert: _assert,
}
if hasattr(ast, "TryStar"):
    _HANDLERS[ast.TryStar] = _try
