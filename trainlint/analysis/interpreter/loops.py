"""Loops: each body stands once in the trace, or lap by lap where the laps are spelled out."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trainlint.analysis.interpreter.conditions import truth
from trainlint.analysis.interpreter.environment import joined
from trainlint.analysis.interpreter.expressions import bind, each, evaluate
from trainlint.analysis.interpreter.generators import run_generator
from trainlint.analysis.interpreter.machine import Machine
from trainlint.analysis.interpreter.unrolling import spelled_out
from trainlint.analysis.trace import Jump, Loop
from trainlint.analysis.values import Constant, Generator, Group, Object, Unknown, Value


def run_for(machine: Machine, node: ast.stmt) -> bool:
    """Run a ``for`` loop; whether the path surely ends inside."""
    assert isinstance(node, (ast.For, ast.AsyncFor))
    iterated = evaluate(machine, node.iter)
    generator = _generator(iterated)
    if generator is not None:
        _loop_over_generator(machine, node, iterated, generator)
        return False
    unrolled = spelled_out(iterated)
    if unrolled is not None:
        return _run_unrolled(machine, node, unrolled)
    loop = Loop(node, machine.file, iterated, Unknown().birth)
    _forget_counters(machine, node)
    loop.element = each(iterated)
    bind(machine, node.target, loop.element)
    _run_loop(machine, loop, node.body, node.orelse)
    return False


def run_while(machine: Machine, node: ast.stmt) -> bool:
    """Run a ``while`` loop; whether it never ends by itself."""
    assert isinstance(node, ast.While)
    loop = Loop(node, machine.file, None, Unknown().birth)
    _forget_counters(machine, node)
    with machine.noting():
        evaluate(machine, node.test)
        endless = truth(machine, node.test) is True
    _run_loop(machine, loop, node.body, node.orelse)
    return endless and not _can_break(node)


def _run_loop(
    machine: Machine, loop: Loop, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]
) -> None:
    from trainlint.analysis.interpreter.statements import run_block

    environment = machine.frame.environment
    before = dict(environment.values)
    with machine.recording(loop.body):
        run_block(machine, body)
    after = environment.values
    environment.values = joined([after, before])
    with machine.recording(loop.orelse):
        run_block(machine, orelse)
    machine.add(loop)


def _forget_counters(machine: Machine, node: ast.For | ast.AsyncFor | ast.While) -> None:
    """Numbers that the body changes are another value on each lap."""
    values = machine.frame.environment.values
    for name in machine.file.names_stored_in(node):
        held = values.get(name)
        is_number = isinstance(held, Constant) or (
            isinstance(held, Object) and held.dotted.startswith("builtins.")
        )
        if is_number or (isinstance(held, Unknown) and held.parent is None):
            values[name] = Unknown(hint=name)


def _can_break(node: ast.While) -> bool:
    pending: list[ast.AST] = list(node.body)
    while pending:
        item = pending.pop()
        if isinstance(item, ast.Break):
            return True
        if not isinstance(item, (ast.For, ast.While, ast.FunctionDef, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(item))
        elif isinstance(item, (ast.For, ast.While)):
            pending.extend(item.orelse)
    return False


def _run_unrolled(machine: Machine, node: ast.For | ast.AsyncFor, items: list[Value]) -> bool:
    """Each element runs as a loop of its own, so that ``break`` and ``continue`` keep a meaning."""
    from trainlint.analysis.interpreter.statements import run_block

    for item in items:
        loop = Loop(node, machine.file, Constant(None), Unknown().birth, lap=item)
        bind(machine, node.target, item)
        with machine.recording(loop.body):
            run_block(machine, node.body)
            loop.body.append(Jump.BREAK)
        machine.add(loop)
    return False


def _generator(iterated: Value) -> Generator | None:
    if isinstance(iterated, Generator):
        return iterated
    if (
        isinstance(iterated, Object)
        and iterated.dotted == "builtins.enumerate"
        and iterated.arguments
    ):
        return _generator(iterated.arguments[0])
    return None


def _loop_over_generator(
    machine: Machine, node: ast.For | ast.AsyncFor, iterated: Value, generator: Generator
) -> None:
    from trainlint.analysis.interpreter.statements import run_block

    def body(value: Value) -> None:
        item = value if iterated is generator else Group([Unknown(), value])
        bind(machine, node.target, item)
        run_block(machine, node.body)

    _forget_counters(machine, node)
    run_generator(machine, generator, body)
