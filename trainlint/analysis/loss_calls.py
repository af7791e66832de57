"""Calls of torch's losses in a file: which loss, and what certainly goes into it."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

from trainlint.analysis.callers import known_callers
from trainlint.analysis.definitions import ClassDefinition, FunctionDefinition
from trainlint.analysis.file_model import FileModel
from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.knowledge.losses import LOSS_CALL_TEXT, LOSS_NAMES, LOSS_PARTS, LossKind
from trainlint.analysis.roles import Role, has_role, loss_kind
from trainlint.analysis.trace import Branch, Call, Event, EventKind, Trace, parts
from trainlint.analysis.values import Tensor, Value, options
from trainlint.scout import called, identifier, part_of_identifier, pattern, text

_WRAPPER_WORDS = ("loss", "criterion")


LOSS_CALL = part_of_identifier(*LOSS_PARTS) & (
    called("|".join(LOSS_PARTS).encode()) | text(")(", "](") & pattern(LOSS_CALL_TEXT.encode())
) | identifier(*LOSS_NAMES) & pattern(LOSS_CALL_TEXT.encode())
"""The scout of all rules about losses: only calls with such a name are looked at."""


@dataclass(frozen=True)
class Activation:
    """The squashing that a tensor has been through last, and the node that applied it."""

    name: str
    node: ast.AST
    file: FileModel

    @property
    def line(self) -> int:
        """The line where it was applied."""
        return getattr(self.node, "lineno", 1)

    def place(self, seen_from: FileModel) -> str:
        """``line 12``, with the file where it is another one."""
        if self.file is seen_from:
            return f"line {self.line}"
        path = self.file.path
        root = self.file.project.root
        shown = path.relative_to(root) if root in path.parents else path
        return f"{shown.as_posix()}:{self.line}"


@dataclass(frozen=True, eq=False)
class LossCall:
    """One way in which a loss is reached.

    ``node`` in ``file`` calls torch's loss, ``wrappers`` are the calls around it, outermost first.
    ``alternatives`` are the losses that may be called there instead, this one included; None
    stands for something else.
    """

    kind: LossKind
    function: Value
    node: ast.Call
    file: FileModel
    input: Value
    target: Value
    wrappers: tuple[Call, ...]
    alternatives: frozenset[LossKind | None]

    @property
    def input_activation(self) -> Activation | None:
        """The squashing that the input has been through, if every way on agrees about it."""
        return _agreed_activation(self.input, self.file)

    @property
    def target_activation(self) -> Activation | None:
        """The squashing that the target has been through, if every way on agrees about it."""
        return _agreed_activation(self.target, self.file)

    def place_of(self, activation: Activation) -> tuple[ast.AST, FileModel]:
        """The outermost loss call that is handed the squashed tensor, and its file."""
        for call in self.wrappers:
            if _is_loss_wrapper(call) and not _happens_in(activation, call):
                return call.node, call.file
        return self.node, self.file


def loss_calls(file: FileModel) -> Iterator[LossCall]:
    """All calls of torch's losses that happen in this file, or in a loss that it calls.

    The file's own runs come first, then those of files that call it, where only they know what
    its functions are given.
    """
    for run in file.runs:
        found = list(_in_trace(run.trace, ()))
        yield from found
        if run.root is not None and _depends_on_caller(run, found):
            for caller in known_callers(run):
                yield from _in_trace(caller.trace, ())


@dataclass(frozen=True, eq=False)
class SquashedInput:
    """A loss whose input has certainly been through an activation; ``node`` is where to say so."""

    node: ast.AST
    call: LossCall
    activation: Activation


def squashed_inputs(
    file: FileModel, kinds: Container[LossKind], activations: Container[str]
) -> Iterator[SquashedInput]:
    """Losses of these kinds whose input has certainly been through one of the activations."""
    for call in file.loss_calls:
        is_sure = all(kind is not None and kind in kinds for kind in call.alternatives)
        activation = call.input_activation if is_sure else None
        if activation is not None and activation.name in activations:
            node, home = call.place_of(activation)
            if home is file and _is_named_like_a_loss(node):
                yield SquashedInput(node, call, activation)


def _depends_on_caller(run: Run, found: list[LossCall]) -> bool:
    """Whether the run uses a loss or a network that only its callers know."""
    if any(call.file is run.file and call.input_activation is None for call in found):
        return True
    return any(_is_unknown_loss(event) for event in _events(run.trace))


def _is_unknown_loss(event: Event) -> bool:
    return event.kind is EventKind.OPAQUE and has_role(event.target, Role.LOSS_FUNCTION)


def _events(trace: Trace) -> Iterator[Event]:
    for step in trace:
        if isinstance(step, Event):
            yield step
        else:
            for part in parts(step):
                yield from _events(part)


def _in_trace(trace: Trace, around: tuple[Call, ...]) -> Iterator[LossCall]:
    for step in trace:
        if isinstance(step, Event):
            kind = loss_kind(step.target) if step.kind is EventKind.LOSS else None
            if kind is not None:
                yield from _loss_call(step, kind, around, frozenset({kind}))
        elif isinstance(step, Branch) and _is_named_like_a_loss(step.node):
            yield from _in_choice(step, around)
        else:
            inner = (*around, step) if isinstance(step, Call) else around
            for part in parts(step):
                yield from _in_trace(part, inner)


def _in_choice(branch: Branch, around: tuple[Call, ...]) -> Iterator[LossCall]:
    """``criterion(...)`` where ``criterion`` may be one function or another.

    A loss that one of them calls inside is one of the alternatives too.
    """
    found: list[LossCall] = []
    alternatives: set[LossKind | None] = set()
    for _, trace in branch.ways:
        inside = list(_in_way(trace, branch.node, around))
        alternatives.update(*(call.alternatives for call in inside) if inside else ({None},))
        found += inside
    for call in found:
        yield replace(call, alternatives=frozenset(alternatives))


def _in_way(trace: Trace, node: ast.AST, around: tuple[Call, ...]) -> Iterator[LossCall]:
    """The loss that is called at ``node``, else those inside of what is called there."""
    event = next((item for item in trace if isinstance(item, Event) and item.node is node), None)
    kind = loss_kind(event.target) if event is not None else None
    if event is not None and kind is not None:
        yield from _loss_call(event, kind, around, frozenset({kind}))
    else:
        yield from _in_trace(trace, around)


def _loss_call(
    event: Event,
    kind: LossKind,
    around: tuple[Call, ...],
    alternatives: frozenset[LossKind | None],
) -> Iterator[LossCall]:
    node, function = event.node, event.target
    if not isinstance(node, ast.Call) or function is None:
        return
    if _is_named_like_a_loss(node):
        first, second = event.arguments
        yield LossCall(kind, function, node, event.file, first, second, around, alternatives)


def _is_named_like_a_loss(node: ast.AST) -> bool:
    """What the scout of the rules promises about every call that they report."""
    return isinstance(node, ast.Call) and bool(
        re.search(LOSS_CALL_TEXT, f"{ast.unparse(node.func)}(")
    )


def _agreed_activation(value: Value, origin: FileModel) -> Activation | None:
    found: list[Tensor] = []
    for option in options(value):
        if not isinstance(option, Tensor) or option.activation is None:
            return None
        found.append(option)
    if len({tensor.activation for tensor in found}) != 1:
        return None
    name, node = found[0].activation, found[0].activated_at
    file = origin.project.holding(node) if node is not None else None
    if name is None or node is None or file is None:
        return None
    return Activation(name, node, file)


def _is_loss_wrapper(call: Call) -> bool:
    definition = call.function
    names = [definition.name]
    if definition.owner is not None and definition.name in ("forward", "__call__"):
        names = [definition.owner.name]
    elif definition.owner is not None:
        return False
    return any(word in name.lower() for name in names for word in _WRAPPER_WORDS)


def _happens_in(activation: Activation, call: Call) -> bool:
    """Whether the squashing is done by something that runs during the call."""
    running = {_unit(function) for function in _functions(call)}
    node: ast.AST | None = activation.node
    parents = activation.file.index.parents
    while node is not None:
        if node in running:
            return True
        node = parents.get(node)
    return False


def _unit(function: FunctionDefinition) -> ast.AST:
    """A module's layers are made in its constructor, so the whole class belongs to its forward."""
    owner: ClassDefinition | None = function.owner
    return owner.node if owner is not None else function.node


def _functions(call: Call) -> Iterator[FunctionDefinition]:
    yield call.function
    pending: list[Trace] = [call.body]
    while pending:
        for step in pending.pop():
            if isinstance(step, Call):
                yield step.function
            pending.extend(parts(step))
