"""Calls of torch's losses in a file: which loss, and what certainly goes into it."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass

from trainlint.analysis.callers import callers
from trainlint.analysis.definitions import ClassDefinition, FunctionDefinition
from trainlint.analysis.file_model import FileModel
from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.knowledge.losses import LossKind
from trainlint.analysis.roles import Role, has_role, loss_kind
from trainlint.analysis.trace import Branch, Call, Event, EventKind, Step, Trace, parts
from trainlint.analysis.values import Tensor, Value, options
from trainlint.scout import pattern

_WRAPPER_WORDS = ("loss", "criterion")
_LOSS_CALL = r"(?i)(?:loss|crit|criterion|entropy|objective|nll|kl_?div|kld?|bce|mse|ce|l1)s?[_\d]*[\]\[)('\"\w]*\("

LOSS_CALL = pattern(_LOSS_CALL.encode())
"""Something that is called by a name that people give to losses: only these calls are looked at."""


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

    ``node`` in ``file`` calls torch's loss. ``place`` is where whoever chose the input stands: the
    call of the project's own loss function or loss class around it (in ``place_file``), if that is
    given the squashed tensor; else ``node`` itself.
    """

    kind: LossKind
    function: Value
    node: ast.Call
    file: FileModel
    input: Value
    target: Value
    wrappers: tuple[Call, ...]

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
        for position, call in enumerate(self.wrappers):
            if _is_loss_wrapper(call) and not _happens_in(activation, self.wrappers[position]):
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
            for caller in callers(run) or []:
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
    for call in loss_calls(file):
        activation = call.input_activation if call.kind in kinds else None
        if activation is not None and activation.name in activations:
            node, home = call.place_of(activation)
            if home is file:
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
            call = _loss_call(step, around)
            if call is not None:
                yield call
        elif not _is_one_of_several_losses(step):
            inner = (*around, step) if isinstance(step, Call) else around
            for part in parts(step):
                yield from _in_trace(part, inner)


def _loss_call(event: Event, around: tuple[Call, ...]) -> LossCall | None:
    kind = loss_kind(event.target) if event.kind is EventKind.LOSS else None
    if kind is None or not isinstance(event.node, ast.Call) or event.target is None:
        return None
    if not re.search(_LOSS_CALL, f"{ast.unparse(event.node.func)}("):
        return None
    first, second = event.arguments
    return LossCall(kind, event.target, event.node, event.file, first, second, around)


def _is_one_of_several_losses(step: Step) -> bool:
    """``criterion(...)`` where ``criterion`` may be one loss or another: nothing is certain."""
    if not isinstance(step, Branch) or not isinstance(step.node, ast.Call):
        return False
    kinds = set()
    for _, trace in step.ways:
        direct = [item for item in trace if isinstance(item, Event) and item.node is step.node]
        kinds.add(loss_kind(direct[0].target) if direct else None)
    return len(kinds) > 1


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
