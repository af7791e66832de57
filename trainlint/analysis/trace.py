"""How code runs, reduced to what matters for training: events in order, branches, loops."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from trainlint.analysis.values import Value

if TYPE_CHECKING:
    from trainlint.analysis.definitions import FunctionDefinition
    from trainlint.analysis.file_model import FileModel


class EventKind(enum.Enum):
    """What happened. ``target`` of the event is the object in parentheses."""

    FORWARD = "forward"  # (module)
    LOSS = "loss"  # (loss function), arguments: the loss's own
    BACKWARD = "backward"  # (the loss tensor)
    GRADIENT = (
        "gradient"  # (what is differentiated): autograd.grad and the like, no ``.grad`` fields
    )
    STEP = "optimizer step"  # (optimizer)
    ZERO_GRAD = "zero_grad"  # (optimizer, module or parameters)
    CLIP = "clip"  # (parameters)
    UNSCALE = "unscale"  # (optimizer)
    SCALER_STEP = "scaler step"  # (scaler); a STEP of the optimizer follows
    SCALER_UPDATE = "scaler update"  # (scaler)
    SCHEDULER_STEP = "scheduler step"  # (scheduler)
    TRAIN = "train mode"  # (module)
    EVAL = "eval mode"  # (module)
    MODE = "mode by flag"  # (module): train or eval, the model cannot tell
    GRAD_MODE = "grad mode"  # (Constant bool, or what decides): set from here on, not a scope
    SET_EPOCH = "set_epoch"  # (sampler, loader or dataset)
    SAVE = "save"  # (what is written)
    LOAD = "load"  # (into what)
    NEW = "new object"  # (the object)
    SET = "attribute set"  # (the object), arguments: the value
    OPAQUE = "unresolved call"  # arguments: all that the call can reach


@dataclass(frozen=True, eq=False)
class Event:
    """One thing that happens at one place.

    ``certain`` is False where the kind was only guessed from a name.
    """

    kind: EventKind
    node: ast.AST
    file: FileModel
    target: Value | None = None
    arguments: tuple[Value, ...] = ()
    certain: bool = True


@dataclass(frozen=True)
class Condition:
    """A test that paths agree on: the same key means the same question.

    ``birth`` is the latest birth of the values it reads; a loop that started earlier asks it anew
    on each lap, as it does for a ``volatile`` one (which calls something or reads a counter).
    """

    key: str
    birth: int
    volatile: bool


Outcome = bool | int
"""How a test came out; of a choice between values, the birth of the one that it is."""
Assumptions = tuple[tuple[Condition, Outcome], ...]


@dataclass(eq=False)
class Branch:
    """One of several ways on; each way holds under its assumptions."""

    node: ast.AST
    ways: list[tuple[Assumptions, Trace]]


@dataclass(eq=False)
class Loop:
    """A body that runs again and again. ``iterated`` is what a ``for`` walks through.

    ``start`` is the birth before which values are older than the loop. ``lap`` is what the variable
    is bound to where this is one lap of a short loop that is run lap by lap. ``original`` is the
    whole loop where this one has been pruned for a protocol.
    """

    node: ast.For | ast.AsyncFor | ast.While | ast.expr
    file: FileModel
    iterated: Value | None
    start: int
    body: Trace = field(default_factory=list)
    orelse: Trace = field(default_factory=list)
    element: Value | None = None
    lap: Value | None = None
    original: Loop | None = None

    @cached_property
    def kinds(self) -> frozenset[EventKind]:
        """The kinds of all events in the body, to be asked for when the trace is complete."""
        return frozenset(step.kind for step in steps(self.body) if isinstance(step, Event))


@dataclass(eq=False)
class Call:
    """A call of a project's function, with its body in place."""

    node: ast.AST
    file: FileModel
    function: FunctionDefinition
    body: Trace = field(default_factory=list)


@dataclass(eq=False)
class Scope:
    """A ``with`` block, or a decorator's reach. Kinds: ``no_grad``, ``inference_mode``,

    ``enable_grad``, ``set_grad_enabled``, ``autocast``, ``no_sync``, ``accumulate``.
    """

    kind: str
    node: ast.AST
    file: FileModel
    subject: Value | None
    body: Trace = field(default_factory=list)


@dataclass(eq=False)
class Attempt:
    """``try``: the body may stop anywhere and continue in a handler; ``final`` always runs."""

    body: Trace = field(default_factory=list)
    handlers: list[Trace] = field(default_factory=list)
    orelse: Trace = field(default_factory=list)
    final: Trace = field(default_factory=list)


class Jump(enum.Enum):
    """A statement that leaves the path."""

    BREAK = "break"
    CONTINUE = "continue"
    RETURN = "return"
    RAISE = "raise"


Step = Event | Branch | Loop | Call | Scope | Attempt | Jump
Trace = list[Step]


def parts(step: Step) -> list[Trace]:
    """The traces directly inside a step."""
    if isinstance(step, Branch):
        return [trace for _, trace in step.ways]
    if isinstance(step, Loop):
        return [step.body, step.orelse]
    if isinstance(step, (Call, Scope)):
        return [step.body]
    if isinstance(step, Attempt):
        return [step.body, *step.handlers, step.orelse, step.final]
    return []


def test_of(branch: Branch) -> str:
    """The source of the test that a branch hangs on; empty where there is none."""
    test = getattr(branch.node, "test", None)
    return ast.unparse(test) if isinstance(test, ast.expr) else ""


def steps(trace: Trace) -> Iterator[Step]:
    """All steps of a trace in order, those inside others included."""
    for step in trace:
        yield step
        for part in parts(step):
            yield from steps(part)


def events(trace: Trace, *kinds: EventKind) -> Iterator[Event]:
    """All events of a trace in order, of these kinds if any are given."""
    for step in steps(trace):
        if isinstance(step, Event) and (not kinds or step.kind in kinds):
            yield step


def around(trace: Trace, wanted: Step) -> list[Step]:
    """The steps of a trace that hold a step, outermost first; empty where it is not inside any."""
    for step in trace:
        if step is wanted:
            return []
        for part in parts(step):
            if any(item is wanted for item in steps(part)):
                return [step, *around(part, wanted)]
    return []
