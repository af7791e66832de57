"""``with`` blocks: scopes that matter for gradients, and the project's own context managers."""

from __future__ import annotations

import ast
from collections.abc import Callable

from trainlint.analysis.interpreter.expressions import bind, evaluate
from trainlint.analysis.interpreter.generators import run_generator
from trainlint.analysis.interpreter.machine import Machine
from trainlint.analysis.interpreter.scopes import uncalled_context, unseen_context
from trainlint.analysis.trace import Scope
from trainlint.analysis.values import (
    Context,
    External,
    FunctionValue,
    Generator,
    Instance,
    Unknown,
    Value,
    options,
)


def run_with(machine: Machine, node: ast.stmt) -> bool:
    """Run a ``with`` block; whether the path surely ends inside."""
    assert isinstance(node, (ast.With, ast.AsyncWith))
    return _with_items(machine, node, list(node.items))


def _with_items(
    machine: Machine, node: ast.With | ast.AsyncWith, items: list[ast.withitem]
) -> bool:
    from trainlint.analysis.interpreter.statements import run_block

    if not items:
        return run_block(machine, node.body)
    item, rest = items[0], items[1:]
    value = evaluate(machine, item.context_expr)
    if isinstance(value, External):
        value = uncalled_context(value.dotted, item.context_expr) or value
    value = unseen_context(item.context_expr, value, node.body) or value
    ended = False

    def body(entered: Value) -> None:
        nonlocal ended
        if item.optional_vars is not None:
            bind(machine, item.optional_vars, entered)
        ended = _with_items(machine, node, rest)

    contexts = [option for option in options(value) if isinstance(option, Context)]
    if contexts:
        _scoped(machine, contexts, value, lambda: body(Unknown()))
    elif isinstance(value, Generator):
        run_generator(machine, value, body)
    elif isinstance(value, Instance) and value.definition.method("__enter__") is not None:
        _entered(machine, value, item.context_expr, body)
    else:
        body(value)
    return ended


def _scoped(
    machine: Machine, contexts: list[Context], value: Value, body: Callable[[], None]
) -> None:
    """One of several contexts may be the one in force: then the scope's kind is uncertain."""
    kinds = {context.kind for context in contexts}
    certain = len(kinds) == 1 and len(contexts) == len(list(options(value)))
    kind = contexts[0].kind if certain else f"maybe {contexts[0].kind}"
    scope = Scope(kind, contexts[0].node, machine.file, contexts[0].subject)
    with machine.recording(scope.body), machine.gradients_as(kind):
        body()
    machine.add(scope)


def _entered(
    machine: Machine, value: Instance, node: ast.expr, body: Callable[[Value], None]
) -> None:
    from trainlint.analysis.interpreter.calls import run_function

    def run(name: str) -> Value:
        method = value.definition.method(name)
        if method is None:
            return value
        bound = FunctionValue(method, value, machine.module_environment(method.file))
        return run_function(machine, bound, [], {}, node)

    body(run("__enter__"))
    run("__exit__")
