"""Plain questions about a training loop that several operators ask."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tests.bench.mutations.program import Program, Scope, called_name

OPTIMIZER = r"optim|^opt$|^opt_|_opt$|_optim"
SCHEDULER = r"sched"
SCALER = r"scaler"
NETWORK = r"model|net$|network|encoder|decoder|generator|discriminator|classifier|^self$"
BACKWARD = ("backward", "manual_backward")


@dataclass(frozen=True)
class Update:
    """The only backward pass, step and clearing of one optimizer in one function, in a loop."""

    scope: Scope
    backward: ast.Expr
    step: ast.Expr
    zero_grad: ast.Expr


def updates(program: Program) -> Iterator[Update]:
    """Training loops with one optimizer, which is cleared and stepped by ``name.method()``."""
    for backward, _ in program.statement_calls("backward"):
        scope = program.scope(backward)
        steps = optimizer_statements(program, scope, "step")
        clears = optimizer_statements(program, scope, "zero_grad")
        backwards = program.calls(scope, *BACKWARD)
        if len(steps) == len(clears) == len(backwards) == 1 and program.repeats(backward):
            step, clear = steps[0], clears[0]
            same = program.receiver(call_of(step)) == program.receiver(call_of(clear))
            if same and program.scope(step) is program.scope(clear) is scope:
                yield Update(scope, backward, step, clear)


def optimizer_statements(program: Program, scope: Scope, verb: str) -> list[ast.Expr]:
    """All ``optimizer.verb(...)`` in a function, told by name, that are statements of their own."""
    calls = [
        call
        for call in program.calls(scope, verb)
        if isinstance(call.func, ast.Attribute)
        and program.names_like(OPTIMIZER, program.receiver(call))
        and not program.names_like(SCHEDULER, program.receiver(call))
    ]
    found = [program.statement(call) for call in calls]
    return [each for each in found if isinstance(each, ast.Expr)]


def call_of(statement: ast.Expr) -> ast.Call:
    """The call that a statement consists of."""
    assert isinstance(statement.value, ast.Call)
    return statement.value


def other_ways(program: Program, scope: Scope, *names: str) -> bool:
    """Whether a function calls anything of these names."""
    return bool(program.calls(scope, *names))


def is_conditional(program: Program, statement: ast.stmt) -> bool:
    """Whether an ``if`` stands between a statement and the loop, or function, around it."""
    for above in program.ancestors(statement):
        if isinstance(above, (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.Module)):
            return False
        if isinstance(above, (ast.If, ast.Try)):
            return True
    return False


def modulo_guard(program: Program, statement: ast.stmt) -> ast.If | None:
    """The ``if (i + 1) % k == 0`` whose body holds a statement, inside the innermost loop."""
    for above in program.ancestors(statement):
        if isinstance(above, (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.Module)):
            return None
        if isinstance(above, ast.If) and any(
            isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)
            for node in ast.walk(above.test)
        ):
            return above
    return None


def losses(program: Program, scope: Scope) -> set[str]:
    """The names of losses on which a function calls ``backward``."""
    found: set[str] = set()
    for call in program.calls(scope, "backward"):
        subject: ast.expr | None = call.func.value if isinstance(call.func, ast.Attribute) else None
        while isinstance(subject, ast.Call):
            named = subject.args[0] if called_name(subject) == "scale" and subject.args else None
            subject = named
        if isinstance(subject, ast.Name):
            found.add(subject.id)
    return found


def last_step_before(program: Program, statement: ast.stmt) -> ast.Expr | None:
    """The last step of an optimizer, or of a scaler, in the same block before a statement."""
    block = program.block(statement)
    steps = optimizer_statements(program, program.scope(statement), "step")
    steps += [
        each
        for each, call in program.statement_calls("step")
        if program.names_like(SCALER, program.receiver(call))
    ]
    before = block[: block.index(statement)]
    return next((each for each in reversed(before) if each in steps), None)
