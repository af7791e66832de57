"""Gradient accumulation: a loop whose optimizer steps only on each k-th lap."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainlint.analysis.file_model import FileModel
from trainlint.analysis.frameworks import framework_of
from trainlint.analysis.index import Function
from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.ownership import are_apart
from trainlint.analysis.protocols.gradients import optimizers
from trainlint.analysis.trace import (
    Branch,
    Call,
    Event,
    EventKind,
    Loop,
    Scope,
    Step,
    Trace,
    around,
    events,
)
from trainlint.analysis.values import Value, overlaps


@dataclass(frozen=True)
class Window:
    """Backward passes on every lap of a loop, and a step only where ``test`` holds.

    ``node`` is the loop, or a ``training_step`` that a framework calls in one; ``lap`` is what
    happens in it. ``counter`` and ``size`` are the two sides of the ``%`` in the test.
    """

    run: Run
    file: FileModel
    node: ast.For | ast.While | Function
    lap: Trace
    branch: ast.If
    test: ast.expr
    counter: ast.expr
    size: ast.expr
    optimizer: Value | None
    step: Event
    backwards: tuple[Event, ...]

    @property
    def index(self) -> str | None:
        """The name that ``enumerate`` counts the laps with."""
        target = self.node.target if isinstance(self.node, ast.For) else None
        if self.walked is None or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            return None
        first = target.elts[0]
        return first.id if isinstance(first, ast.Name) else None

    @property
    def walked(self) -> ast.expr | None:
        """What ``enumerate`` goes through, out of a progress bar."""
        call = self.node.iter if isinstance(self.node, ast.For) else None
        call = _out_of_bar(call) if call is not None else None
        if not isinstance(call, ast.Call) or ast.unparse(call.func) != "enumerate":
            return None
        return None if len(call.args) != 1 or call.keywords else _out_of_bar(call.args[0])

    @property
    def is_accumulation(self) -> bool:
        """Whether the step waits for more gradients, and not for another network's turn."""
        if _SCHEDULES.search(ast.unparse(self.test)):
            return False
        is_alone = len(optimizers(self.run)) == 1
        return is_alone or bool(_ACCUMULATES.search(ast.unparse(self.size).rpartition(".")[2]))

    def cleared_each_lap(self) -> Event | None:
        """A ``zero_grad`` for the optimizer that no condition holds back."""
        return _cleared(self.lap, self.file, self.optimizer)


_MICRO_BATCHES = re.compile(r"accum|micro", re.IGNORECASE)
_ACCUMULATES = re.compile(
    r"accum|grad|micro|virtual|iter_?size|update_?freq|multiplier|^(n|k|n?steps?)$", re.IGNORECASE
)
# Every n-th lap for one of several networks is a schedule, not accumulation.
_SCHEDULES = re.compile(r"critic|disc|gen(erator)?_|policy|delay|target|actor", re.IGNORECASE)


def _cleared(lap: Trace, file: FileModel, optimizer: Value | None) -> Event | None:
    for event in events(lap, EventKind.ZERO_GRAD):
        if any(isinstance(item, (Branch, Loop)) for item in around(lap, event)):
            continue
        is_call = isinstance(event.node, ast.Call) and "zero_grad" in ast.unparse(event.node)
        if event.file is not file or not is_call or event.target is None or optimizer is None:
            continue
        if not are_apart(event.target, optimizer):
            return event
    return None


def _out_of_bar(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and "tqdm" in ast.unparse(node.func) and node.args:
        node = node.args[0]
    return node


def windows(file: FileModel) -> Iterator[Window]:
    """The accumulation windows of a file, each once."""
    seen: set[ast.If] = set()
    for run in file.runs:
        for step in events(run.trace, EventKind.STEP):
            found = _window(run, step) if step.file is file else None
            if found is not None and found.branch not in seen:
                seen.add(found.branch)
                yield found


@dataclass(frozen=True)
class MicroBatches:
    """A loop ``for _ in range(size)`` of backward passes, after which the optimizer steps once.

    ``cleared`` is a ``zero_grad`` on each of its laps, if there is one.
    """

    file: FileModel
    size: ast.expr
    backwards: tuple[Event, ...]
    step: Event
    cleared: Event | None


def micro_batches(file: FileModel) -> Iterator[MicroBatches]:
    """The loops over micro-batches, told by the name of their number, each once."""
    seen: set[ast.AST] = set()
    for run in file.runs:
        for step in events(run.trace, EventKind.STEP):
            loops = [item for item in around(run.trace, step) if isinstance(item, Loop)]
            body = loops[-1].body if loops else []
            for inner in (item for item in body if isinstance(item, Loop)):
                size = _number_of_laps(inner)
                if size is None or inner.file is not file or inner.node in seen:
                    continue
                backwards = tuple(events(inner.body, EventKind.BACKWARD))
                steps = any(True for _ in events(inner.body, EventKind.STEP))
                if backwards and not steps and len(optimizers(run)) == 1:
                    seen.add(inner.node)
                    cleared = _cleared(inner.body, file, step.target)
                    yield MicroBatches(file, size, backwards, step, cleared)


def _number_of_laps(loop: Loop) -> ast.expr | None:
    """``accum_steps`` of ``for micro_step in range(accum_steps)``."""
    call = _out_of_bar(loop.node.iter) if isinstance(loop.node, ast.For) else None
    if not isinstance(call, ast.Call) or len(call.args) != 1:
        return None
    is_counted = isinstance(call.func, ast.Name) and call.func.id in ("range", "trange")
    name = ast.unparse(call.args[0]).rpartition(".")[2]
    return call.args[0] if is_counted and _MICRO_BATCHES.search(name) else None


def resolved(lap: ast.AST, test: ast.expr) -> ast.expr:
    """The test itself, or what the one assignment in the lap says that its name stands for."""
    if not isinstance(test, ast.Name):
        return test
    found = [
        node.value
        for node in ast.walk(lap)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == test.id for target in node.targets)
    ]
    return found[0] if len(found) == 1 else test


def _window(run: Run, step: Event) -> Window | None:
    way, file = around(run.trace, step), step.file
    repeated = _repeated(way)
    if repeated is None or any(
        isinstance(item, Scope) and item.kind == "accumulate" for item in way
    ):
        return None
    node = repeated.function.node if isinstance(repeated, Call) else repeated.node
    if isinstance(node, (ast.expr, ast.AsyncFor)) or node not in file.index.parents:
        return None
    for branch in way[way.index(repeated) + 1 :]:
        if not isinstance(branch, Branch) or not isinstance(branch.node, ast.If):
            continue
        test = resolved(node, branch.node.test)
        modulo = _modulo(test)
        backwards = _backwards_outside(repeated.body, branch, step.target)
        is_body = step.node in set(ast.walk(ast.Module(branch.node.body, [])))
        if modulo is None or not backwards or not is_body:
            continue
        return Window(
            run, file, node, repeated.body, branch.node, test, modulo.left, modulo.right,
            step.target, step, backwards,
        )  # fmt: skip
    return None


def _repeated(way: list[Step]) -> Loop | Call | None:
    """The innermost loop, or else the framework's hook that runs once for each batch."""
    loops = [item for item in way if isinstance(item, Loop)]
    if loops:
        return loops[-1]
    for item in way:
        owner = item.function.owner if isinstance(item, Call) else None
        if isinstance(item, Call) and owner is not None and framework_of(owner) is not None:
            return item if item.function.name == "training_step" else None
    return None


def _backwards_outside(lap: Trace, branch: Branch, optimizer: Value | None) -> tuple[Event, ...]:
    """The lap's own backward passes for an optimizer; none where the branch holds some as well."""
    inside = [event for _, way in branch.ways for event in events(way, EventKind.BACKWARD)]
    if inside:
        return ()
    used_up = _used_up(lap, optimizer)
    return tuple(
        event
        for event in events(lap, EventKind.BACKWARD)
        if event not in used_up and not any(isinstance(item, Loop) for item in around(lap, event))
    )


def _used_up(lap: Trace, optimizer: Value | None) -> set[Event]:
    """Backward passes that a step of another optimizer follows at once: they are for that one."""
    if optimizer is None:
        return set()
    order = list(events(lap, EventKind.BACKWARD, EventKind.STEP))
    return {
        first
        for first, then in itertools.pairwise(order)
        if first.kind is EventKind.BACKWARD
        and then.kind is EventKind.STEP
        and not overlaps(then.target, optimizer)
    }


def _modulo(test: ast.expr) -> ast.BinOp | None:
    """``x % k`` in ``x % k == 0``, ``not x % k`` or a combination of such tests."""
    for node in ast.walk(test):
        operand: ast.expr | None = None
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            is_zero = isinstance(node.ops[0], ast.Eq) and _is_rest(node.comparators[0], node.left)
            operand = node.left if is_zero else None
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            operand = node.operand
        if not isinstance(operand, ast.BinOp) or not isinstance(operand.op, ast.Mod):
            continue
        if not (isinstance(operand.right, ast.Constant) and operand.right.value == 1):
            return operand
    return None


def _is_rest(value: ast.expr, modulo: ast.expr) -> bool:
    """``0``, or ``k - 1`` of ``i % k == k - 1``."""
    if isinstance(value, ast.Constant):
        return value.value == 0
    return (
        isinstance(value, ast.BinOp)
        and isinstance(value.op, ast.Sub)
        and isinstance(modulo, ast.BinOp)
        and ast.dump(value.left) == ast.dump(modulo.right)
    )
