"""Statements: they bind names, fork and join paths, and give the trace its shape."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from trainlint.analysis.interpreter.conditions import assumptions, truth
from trainlint.analysis.interpreter.expressions import bind, each, evaluate, mix
from trainlint.analysis.interpreter.generators import run_generator
from trainlint.analysis.interpreter.machine import Machine
from trainlint.analysis.interpreter.scopes import GRAD_SWITCHES, uncalled_context, unseen_context
from trainlint.analysis.trace import (
    Assumptions,
    Attempt,
    Branch,
    EventKind,
    Jump,
    Loop,
    Scope,
    Trace,
)
from trainlint.analysis.values import (
    ClassValue,
    Constant,
    Context,
    External,
    FunctionValue,
    Generator,
    Group,
    Instance,
    Object,
    Unknown,
    Value,
    choice,
    is_listed,
    options,
)

_LEAVES_PROGRAM = frozenset({"sys.exit", "builtins.exit", "builtins.quit", "os._exit", "os.abort"})
_MAX_UNROLLED = 4


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
        old.elements.extend(new.elements if isinstance(new, Group) else [new])
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
    environment.values = _joined(survivors) if survivors else dict(before)
    if any(trace for _, trace in branch.ways):
        machine.add(branch)
    return not survivors


def _joined(survivors: list[dict[str, Value]]) -> dict[str, Value]:
    if len(survivors) == 1:
        return survivors[0]
    joined = dict(survivors[0])
    for other in survivors[1:]:
        for name, value in other.items():
            held = joined.get(name)
            if held is None:
                joined[name] = value
            elif held is not value:
                joined[name] = choice([held, value])
    return joined


def _is_main_guard(test: ast.expr) -> bool:
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
        and isinstance(test.ops[0], ast.Eq)
    )


def _for(machine: Machine, node: ast.stmt) -> bool:
    assert isinstance(node, (ast.For, ast.AsyncFor))
    iterated = evaluate(machine, node.iter)
    generator = _generator(iterated)
    if generator is not None:
        _loop_over_generator(machine, node, iterated, generator)
        return False
    unrolled = _unrolled(iterated)
    if unrolled is not None:
        return _run_unrolled(machine, node, unrolled)
    loop = Loop(node, machine.file, iterated, Unknown().birth)
    _forget_counters(machine, node)
    loop.element = each(iterated)
    bind(machine, node.target, loop.element)
    _run_loop(machine, loop, node.body, node.orelse)
    return False


def _while(machine: Machine, node: ast.stmt) -> bool:
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
    environment = machine.frame.environment
    before = dict(environment.values)
    with machine.recording(loop.body):
        run_block(machine, body)
    after = environment.values
    environment.values = _joined([after, before])
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


def _unrolled(iterated: Value) -> list[Value] | None:
    """The elements of a short display of literals or objects that the code spells out."""
    if not isinstance(iterated, Group) or iterated.open:
        return None
    items: list[Value] = list(iterated.elements)
    if iterated.keys is not None:
        items = [Constant(key) for key in iterated.keys]
    if not 1 <= len(items) <= _MAX_UNROLLED:
        return None
    return items if all(map(_is_spelled, items)) else None


def _is_spelled(item: Value) -> bool:
    """A literal or object that the code names, or a tuple of such."""
    if isinstance(item, Group):
        return not item.open and item.keys is None and all(map(_is_spelled, item.elements))
    return (
        isinstance(item, (Object, Instance))
        or (isinstance(item, Constant) and isinstance(item.value, (str, bool)))
        or (isinstance(item, Unknown) and bool(item.hint))
    )


def _run_unrolled(machine: Machine, node: ast.For | ast.AsyncFor, items: list[Value]) -> bool:
    """Each element runs as a loop of its own, so that ``break`` and ``continue`` keep a meaning."""
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
    def body(value: Value) -> None:
        item = value if iterated is generator else Group([Unknown(), value])
        bind(machine, node.target, item)
        run_block(machine, node.body)

    _forget_counters(machine, node)
    run_generator(machine, generator, body)


def _with(machine: Machine, node: ast.stmt) -> bool:
    assert isinstance(node, (ast.With, ast.AsyncWith))
    return _with_items(machine, node, list(node.items))


def _with_items(
    machine: Machine, node: ast.With | ast.AsyncWith, items: list[ast.withitem]
) -> bool:
    if not items:
        return run_block(machine, node.body)
    item, rest = items[0], items[1:]
    value = evaluate(machine, item.context_expr)
    if isinstance(value, External):
        value = uncalled_context(value.dotted, item.context_expr) or value
    value = unseen_context(item.context_expr, value) or value
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
        environment.values = _joined([dict(environment.values), before])
        trace: Trace = []
        with machine.recording(trace), machine.conditionally():
            if handler.name:
                environment.assign(handler.name, Unknown(hint=handler.name))
            if not run_block(machine, handler.body):
                survivors.append(environment.values)
        attempt.handlers.append(trace)
    environment.values = _joined(survivors) if survivors else before
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
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
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
