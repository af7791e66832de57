"""Data loaders: where they are made, from what, and whether they train or evaluate."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from trainlint.analysis.callers import callers, known_callers
from trainlint.analysis.definitions import FunctionDefinition
from trainlint.analysis.evaluation_loops import trains
from trainlint.analysis.file_model import FileModel
from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.knowledge.training import (
    GRAPH_LOADER_CLASSES,
    LOADER_CLASSES,
    sounds_like_evaluation,
    speaks_of_training,
)
from trainlint.analysis.ownership import reachable
from trainlint.analysis.trace import Call, Event, EventKind, Loop, Trace, events, parts, steps
from trainlint.analysis.values import Group, Instance, Object, Value, elements, options

_POSITIONS = {"dataset": 0, "batch_size": 1, "shuffle": 2, "sampler": 3, "batch_sampler": 4}
_ORDER = frozenset({"shuffle", "sampler", "batch_sampler"})
_SAME_OBJECT = (ast.IfExp, ast.Await, ast.Starred)


class Purpose(enum.Enum):
    """What batches are for."""

    TRAINING = "training"
    EVALUATION = "evaluation"


class Walks:
    """Which loops of a run walk through what, found once for all its loaders."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @cached_property
    def _loops(self) -> list[tuple[Loop, set[Value]]]:
        return [
            (step, reachable(elements(step.iterated), through_tensors=False))
            for step in steps(self._run.trace)
            if isinstance(step, Loop)
        ]

    def through(self, value: Value) -> list[Loop]:
        """The loops that walk through a value."""
        return [loop for loop, walked in self._loops if value in walked]


@dataclass(frozen=True, eq=False)
class Loader:
    """One loader as one run makes it, inside of ``calls``, outermost first."""

    value: Object
    file: FileModel
    run: Run
    calls: tuple[Call, ...]
    walks: Walks

    @property
    def call(self) -> ast.Call:
        """The expression that makes it."""
        return self.value.node

    def argument(self, name: str) -> Value | None:
        """What it was made with; None where that was left at its default."""
        return self.value.argument(_POSITIONS.get(name, 99), name)

    @property
    def draws_from_graph(self) -> bool:
        """Whether training and evaluation share the graph: masks or seed nodes tell them apart."""
        return self.value.dotted in GRAPH_LOADER_CLASSES

    @property
    def has_unseen_arguments(self) -> bool:
        """Whether ``*arguments`` or ``**options`` may decide on its order unseen."""
        if any(isinstance(item, ast.Starred) for item in self.call.args):
            return True
        return any(
            not isinstance(item, Group)
            or item.keys is None
            or item.open
            or not _ORDER.isdisjoint(map(str, item.keys))
            for item in options(self.value.keywords.get("**"))
        )

    def expression(self, name: str) -> ast.expr | None:
        """The argument as the call spells it."""
        given = next((item.value for item in self.call.keywords if item.arg == name), None)
        position = _POSITIONS.get(name, 99)
        is_listed = given is None and position < len(self.call.args)
        return self.call.args[position] if is_listed else given

    def place(self, argument: str) -> tuple[FileModel, ast.Call]:
        """Where the argument is decided: this call, or that of the helper which hands it on."""
        given = self.expression(argument)
        if self.calls and isinstance(given, ast.Name) and isinstance(self.calls[-1].node, ast.Call):
            bound = self.file.index.bindings(given.id, self.file.index.scope(given))
            if any(isinstance(item, ast.arg) for item in bound):
                return self.calls[-1].file, self.calls[-1].node
        return self.file, self.call

    @cached_property
    def _ways_to_name(self) -> list[list[str]]:
        """What is made of a helper's result first, then what stands where the loader is made."""
        own = [*names_of(self.file, self.call), self.value.hint]
        if self.calls and _is_returned(self.file, self.call):
            return [names_of(self.calls[-1].file, self.calls[-1].node), own]
        return [own]

    @property
    def name(self) -> str:
        """The name that tells the purpose, else any; empty where it has none."""
        found = [name for names in self._ways_to_name for name in names if name]
        telling = (name for name in found if purpose_of_names([name]) is not None)
        return next(telling, found[0] if found else "")

    @property
    def shown(self) -> str:
        """How messages speak of it."""
        return f"`{self.name}`" if self.name else "this loader"

    @cached_property
    def named_purpose(self) -> Purpose | None:
        """What its names say; None where they say nothing, or both."""
        for names in self._ways_to_name:
            if any(speaks_of_training(name) or sounds_like_evaluation(name) for name in names):
                return purpose_of_names(names)
        return None

    @property
    def is_renamed(self) -> bool:
        """Whether the helper that makes it names it for one purpose, and its caller for another."""
        inside, outside = names_of(self.file, self.call), self._ways_to_name[0]
        purposes = {purpose_of_names(inside), purpose_of_names(outside)}
        return len(purposes - {None}) > 1

    @cached_property
    def loops(self) -> list[Loop]:
        """The loops of the run that walk through it."""
        return self.walks.through(self.value)

    @property
    def trains(self) -> bool:
        """Whether a loop over it takes training steps."""
        return any(trains(loop) for loop in self.loops)

    @property
    def purpose(self) -> Purpose | None:
        """By its use where that is in sight, else by its names."""
        if self.trains:
            return Purpose.TRAINING
        return self.named_purpose


def loaders_of(file: FileModel) -> Iterator[Loader]:
    """The loaders that the runs reaching a file's code make, in this file and in its helpers.

    Unit tests do not count as callers: they pass the same toy data for everything.
    """
    seen: set[ast.Call] = set()
    for run in file.runs:
        walks = Walks(run)
        own = list(_made(run, walks, run.trace, ()))
        seen |= {loader.call for loader in own}
        found = (callers(run) or []) if own else []
        outside = [other for other in found if not other.file.is_unit_test]
        for other in outside:
            yield from _made(other, Walks(other), other.trace, ())
        if not outside:
            yield from own
        if run.construction and not _is_made_elsewhere(file, run):
            yield from _made(run, walks, run.construction, ())
    for constructor in _unseen_constructors(file, seen):
        for other in known_callers(Run(file, constructor, [], frozenset(), complete=True)):
            if not other.file.is_unit_test:
                yield from _made(other, Walks(other), other.trace, ())


def _is_made_elsewhere(file: FileModel, run: Run) -> bool:
    """Whether code in sight makes an object of the class whose method starts the run."""
    assert run.root is not None
    assert run.root.owner is not None
    constructor = run.root.owner.method("__init__")
    made = (event.target for other in file.runs for event in events(other.trace, EventKind.NEW))
    if constructor is None or any(
        isinstance(item, Instance) and item.definition.method("__init__") is constructor
        for item in made
    ):
        return True
    return bool(known_callers(Run(file, constructor, [], frozenset(), complete=True)))


def _unseen_constructors(file: FileModel, seen: set[ast.Call]) -> Iterator[FunctionDefinition]:
    """Constructors whose loaders are made only where other files make the objects."""
    for owner in file.classes.values():
        method = owner.own_methods.get("__init__")
        if method is not None and any(
            call not in seen and file.qualified(call.func) in LOADER_CLASSES
            for call in method.calls
        ):
            yield method


def _made(run: Run, walks: Walks, trace: Trace, calls: tuple[Call, ...]) -> Iterator[Loader]:
    for step in trace:
        if isinstance(step, Event):
            made = step.target
            if step.kind is EventKind.NEW and isinstance(made, Object) and is_loader(made):
                yield Loader(made, step.file, run, calls, walks)
            continue
        inside = (*calls, step) if isinstance(step, Call) else calls
        for part in parts(step):
            yield from _made(run, walks, part, inside)


def is_loader(value: Value) -> bool:
    """Whether a value certainly is a loader of torch, or one made in its image."""
    return isinstance(value, Object) and value.dotted in LOADER_CLASSES


def purpose_of_names(names: Iterable[str]) -> Purpose | None:
    """What names say about data; None where they say nothing, or speak of both."""
    training = [name for name in names if speaks_of_training(name)]
    evaluation = [name for name in names if sounds_like_evaluation(name)]
    if bool(training) is bool(evaluation):
        return None
    return Purpose.TRAINING if training else Purpose.EVALUATION


def names_of(file: FileModel, made: ast.AST) -> list[str]:
    """What the result of an expression is bound to where it stands.

    A variable or attribute, the key of a dictionary, a keyword, or the function that returns it.
    """
    node, parent = made, file.index.parents.get(made)
    while parent is not None and (isinstance(parent, _SAME_OBJECT) or _only_wraps(parent, node)):
        node, parent = parent, file.index.parents.get(parent)
    if isinstance(parent, ast.Return):
        function = file.index.enclosing_function(parent)
        return [function.name] if function is not None else []
    if isinstance(parent, ast.keyword):
        return [parent.arg] if parent.arg else []
    if isinstance(parent, ast.Dict):
        return [
            _text(key)
            for key, value in zip(parent.keys, parent.values, strict=True)
            if value is node
        ]
    if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        return [_text(target) for target in targets]
    if isinstance(parent, ast.Tuple):
        return _names_in_tuple(file, parent, node)
    return []


def _only_wraps(parent: ast.AST, node: ast.AST) -> bool:
    """``iter(loader)``, ``cycle(loader)``, ``accelerator.prepare(loader)``."""
    return isinstance(parent, ast.Call) and parent.args == [node] and not parent.keywords


def _names_in_tuple(file: FileModel, parent: ast.Tuple, node: ast.AST) -> list[str]:
    statement = file.index.parents.get(parent)
    if not isinstance(statement, ast.Assign):
        return []
    target = statement.targets[0]
    if not isinstance(target, ast.Tuple) or len(target.elts) != len(parent.elts):
        return []
    return [
        _text(target.elts[position]) for position, item in enumerate(parent.elts) if item is node
    ]


def _text(node: ast.expr | None) -> str:
    """A target in words: ``self.val_loader`` is ``val_loader``, ``loaders["val"]`` has both."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Subscript):
        return f"{_text(node.value)} {_text(node.slice)}"
    return node.id if isinstance(node, ast.Name) else ""


def _is_returned(file: FileModel, call: ast.Call) -> bool:
    """Whether the helper hands out this one loader, itself or under a name."""
    function = file.index.enclosing_function(call)
    if function is None:
        return False
    bound = {call, *_targets(file, call)}
    returned = [
        node.value for node in file.index.nodes_in(function, ast.Return) if node.value is not None
    ]
    names = {node.id for node in bound if isinstance(node, ast.Name)}
    return any(
        value is call or (isinstance(value, ast.Name) and value.id in names) for value in returned
    )


def _targets(file: FileModel, call: ast.Call) -> list[ast.expr]:
    parent = file.index.parents.get(call)
    return list(parent.targets) if isinstance(parent, ast.Assign) else []
