"""What the interpreter knows about a value: objects with identity, not numbers."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainlint.analysis.definitions import ClassDefinition, FunctionDefinition
    from trainlint.analysis.interpreter.environment import Environment
    from trainlint.analysis.interpreter.machine import Frame


_MAX_OPTIONS = 8
_CONTAINERS = frozenset({"torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ModuleDict"})


@dataclass(eq=False)
class Value:
    """Compared by identity: two uses of one value are one object.

    ``birth`` orders values by when they came to be, so that a loop knows which are made anew on
    each lap. ``members`` holds attributes and constant subscripts seen or set so far. ``hint`` is
    the name that it was first bound to or reached by.
    """

    birth: int = field(default_factory=itertools.count().__next__, init=False, repr=False)
    members: dict[str, Value] = field(default_factory=dict, init=False, repr=False)
    hint: str = field(default="", kw_only=True)


@dataclass(eq=False)
class Unknown(Value):
    """A value that the model cannot see. ``annotation`` is the class its parameter declares.

    ``varies``: it is what a loop walks through, another one on each lap.
    """

    parent: Value | None = field(default=None, repr=False)
    annotation: str | None = None
    varies: bool = False


@dataclass(eq=False)
class Constant(Value):
    """A literal."""

    value: object = None


@dataclass(eq=False)
class External(Value):
    """A module, class or function of a library, by its canonical dotted name."""

    dotted: str = ""


@dataclass(eq=False)
class ClassValue(Value):
    """A class of the project."""

    definition: ClassDefinition


@dataclass(eq=False)
class FunctionValue(Value):
    """A function of the project; ``receiver`` is bound as its first parameter."""

    definition: FunctionDefinition
    receiver: Value | None = None
    closure: Environment | None = field(default=None, repr=False)


@dataclass(eq=False)
class LambdaValue(Value):
    """An anonymous function; ``frame`` is what ran where it was made: its file and variables."""

    node: ast.Lambda
    frame: Frame = field(repr=False)


@dataclass(eq=False)
class Instance(Value):
    """An object of a class of the project. ``symbolic``: made by the model, not by the code.

    ``layers`` is what its constructor hands to the constructor of a library's class above it.
    ``postponed`` runs the constructor of a network, which waits until somebody looks inside.
    """

    definition: ClassDefinition
    node: ast.AST | None = None
    symbolic: bool = False
    arguments: list[Value] = field(default_factory=list, repr=False)
    postponed: Callable[[], None] | None = field(default=None, init=False, repr=False)
    _members: dict[str, Value] = field(default_factory=dict, init=False, repr=False)
    _layers: list[Value] = field(default_factory=list, init=False, repr=False)

    def look_inside(self) -> None:
        """Run the constructor if that is still to be done."""
        if self.postponed is not None:
            construct, self.postponed = self.postponed, None
            construct()

    @property  # type: ignore[misc]  # the base sets a plain attribute; here reading it may build
    def members(self) -> dict[str, Value]:
        """Attributes set so far."""
        self.look_inside()
        return self._members

    @members.setter
    def members(self, members: dict[str, Value]) -> None:
        self._members = members

    @property
    def layers(self) -> list[Value]:
        """What the constructor handed to a library's constructor."""
        self.look_inside()
        return self._layers

    @layers.setter
    def layers(self, layers: list[Value]) -> None:
        self._layers = layers


@dataclass(eq=False)
class Object(Value):
    """An object of a library's class, or what a library's function returned.

    ``dotted`` names the class or function that was called, ``arguments`` and ``keywords`` are what
    it was called with. ``has_parameters``: the code asks it for them.
    """

    dotted: str
    node: ast.Call
    arguments: list[Value] = field(default_factory=list, repr=False)
    keywords: dict[str, Value] = field(default_factory=dict, repr=False)
    copy_of: Value | None = field(default=None, repr=False)
    has_parameters: bool = field(default=False, repr=False)

    def argument(self, position: int, keyword: str) -> Value | None:
        """What was passed for a parameter, by position or by keyword."""
        if keyword in self.keywords:
            return self.keywords[keyword]
        return self.arguments[position] if position < len(self.arguments) else None


@dataclass(eq=False)
class Parameters(Value):
    """``module.parameters()`` and what is picked from it; of an unknown module, ``owner`` too."""

    owner: Value
    node: ast.AST


@dataclass(eq=False)
class Group(Value):
    """A list, tuple, set or dict. ``keys`` name the elements of a dict.

    ``open``: more elements than the listed ones may be in it. ``depth``: how many conditions deep
    it was made. ``last_is_sure``: the last element listed is the last one on every path.
    """

    elements: list[Value] = field(default_factory=list)
    keys: list[object] | None = None
    open: bool = False
    depth: int = 0
    last_is_sure: bool = True


@dataclass(eq=False)
class Choice(Value):
    """One of several values, depending on the path taken."""

    options: tuple[Value, ...] = ()


@dataclass(eq=False)
class Tensor(Value):
    """A tensor, as far as the training rules care.

    ``activation``: the squashing that was applied last and still holds (``softmax``,
    ``log_softmax``, ``sigmoid``, ``log_sigmoid``, ``tanh``, ``log``; ``linear``: straight out of
    a linear layer), and ``activated_at`` where. None: not known.
    ``origins``: ``model`` (passed through a module), ``batch`` (came out of a loader).
    ``modules``: whose outputs it was made from. ``detached``: carries no graph.
    ``scaler``: the GradScaler that scaled it.
    """

    origins: frozenset[str] = frozenset()
    modules: frozenset[Value] = frozenset()
    activation: str | None = None
    activated_at: ast.AST | None = None
    detached: bool = False
    is_loss: bool = False
    scaler: Value | None = None

    @property
    def trains(self) -> frozenset[Value]:
        """The modules that a backward pass from this tensor reaches."""
        return frozenset() if self.detached else self.modules


@dataclass(eq=False)
class Context(Value):
    """A context manager that matters: ``kind`` is a scope kind of the trace."""

    kind: str
    node: ast.AST
    subject: Value | None = None


def options(value: Value | None) -> Iterator[Value]:
    """The value itself, or each option of a choice."""
    if isinstance(value, Choice):
        for option in value.options:
            yield from options(option)
    elif value is not None:
        yield value


def choice(values: Iterable[Value]) -> Value:
    """One value for several that may be there; the value itself if all are the same."""
    distinct: dict[object, Value] = {}
    for value in values:
        if not isinstance(value, Choice):
            distinct.setdefault(_identity(value), value)
            continue
        for option in options(value):
            distinct.setdefault(_identity(option), option)
    found = list(distinct.values())
    if len(found) > _MAX_OPTIONS:
        found = [*found[:_MAX_OPTIONS], Unknown()]
    return found[0] if len(found) == 1 else Choice(tuple(found))


def give_name(value: Value, given: str) -> None:
    """Remember the first name that a value is bound to; unknown options of a choice share it."""
    for each in (value, *(value.options if isinstance(value, Choice) else ())):
        if not each.hint and (each is value or isinstance(each, Unknown)):
            each.hint = given


def without_none(value: Value) -> Value:
    """The options that can be called or read where some option is ``None``; else the value."""
    if not isinstance(value, Choice):
        return value
    kept = [
        option
        for option in value.options
        if not (isinstance(option, Constant) and option.value is None)
    ]
    is_same = not kept or len(kept) == len(value.options)
    return value if is_same else choice(kept)


def contained(value: Value) -> list[Value] | None:
    """The modules in one of torch's containers; None for anything else, or if they are unseen."""
    if not isinstance(value, Object) or value.dotted not in _CONTAINERS:
        return None
    found = [
        item
        for argument in value.arguments
        for item in (argument.elements if isinstance(argument, Group) else [argument])
    ]
    return found or None


def is_listed(value: Value) -> bool:
    """Whether a value is a group whose last element is known."""
    return isinstance(value, Group) and bool(value.elements) and value.last_is_sure


def _identity(value: Value) -> object:
    """Library names and literals are the same wherever they are written."""
    if isinstance(value, External):
        return value.dotted
    if isinstance(value, Constant):
        return (type(value.value), repr(value.value))
    return id(value)


def elements(value: Value | None) -> Iterator[Value]:
    """All values inside nested groups and choices, or the value itself."""
    for option in options(value):
        if isinstance(option, Group):
            for element in option.elements:
                yield from elements(element)
        else:
            yield option


def overlaps(first: Value | None, second: Value | None) -> bool:
    """Whether two values may be the same object, or hold a common one."""
    held = {id(item) for item in elements(first)}
    return any(id(item) in held for item in elements(second))


@dataclass(eq=False)
class Generator(Value):
    """A call of a generator function that has not run yet: a loop or ``with`` runs it."""

    function: FunctionValue
    arguments: list[Value]
    keywords: dict[str, Value]
    node: ast.Call
