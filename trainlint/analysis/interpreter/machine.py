"""The state of an interpretation: the frame, the trace being written, and the budget."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from trainlint.analysis.definitions import ClassDefinition, FunctionDefinition
from trainlint.analysis.file_model import FileModel
from trainlint.analysis.interpreter.environment import Environment, ModuleEnvironment
from trainlint.analysis.trace import Event, EventKind, Step, Trace
from trainlint.analysis.values import (
    ClassValue,
    External,
    FunctionValue,
    Instance,
    Unknown,
    Value,
    choice,
)

MAX_CALL_DEPTH = 12
RUN_BUDGET = 10_000
FILE_BUDGET = 20_000


@dataclass
class Frame:
    """One running function, or a module. ``on_yield`` is what a loop or ``with`` does there."""

    file: FileModel
    environment: Environment
    function: FunctionDefinition | None = None
    receiver: Value | None = None
    returned: list[Value] = field(default_factory=list)
    on_yield: Callable[[Value], None] | None = None


@dataclass
class Memory:
    """What the runs of one file share: module environments, and one object of each class.

    ``constructions`` are the traces of the constructors that made those objects.
    ``budget`` is what is left for all of them, in expressions and statements evaluated.
    """

    modules: dict[FileModel, ModuleEnvironment] = field(default_factory=dict)
    instances: dict[ClassDefinition, Instance] = field(default_factory=dict)
    constructions: dict[ClassDefinition, Trace] = field(default_factory=dict)
    definitions: dict[tuple[FileModel, str], Value] = field(default_factory=dict)
    budget: int = FILE_BUDGET


class Meanwhile:
    """A ``with`` block during which one attribute of the machine has another value.

    Every statement enters some: a generator under ``contextmanager`` takes three times as long.
    """

    __slots__ = ("_machine", "_name", "_outer", "_value")

    def __init__(self, machine: Machine, name: str, value: object) -> None:
        self._machine, self._name, self._value = machine, name, value

    def __enter__(self) -> None:
        self._outer = getattr(self._machine, self._name)
        setattr(self._machine, self._name, self._value)

    def __exit__(self, *_: object) -> None:
        setattr(self._machine, self._name, self._outer)


class Machine:
    """Holds what the evaluating functions share. One machine makes one trace."""

    def __init__(self, file: FileModel, memory: Memory) -> None:
        self.project = file.project
        self.trace: Trace = []
        self.budget = min(RUN_BUDGET, memory.budget)
        self.conditional_depth = 0
        self.active: list[FunctionDefinition] = []
        self.entered: set[FunctionDefinition] = set()
        self.graphless_since: int | None = None
        self.noted: dict[ast.expr, Value] | None = None
        self.forward_results: dict[object, Value] = {}
        self._memory = memory
        self.frame = Frame(file, self.module_environment(file))

    @property
    def file(self) -> FileModel:
        """The file whose code runs now."""
        return self.frame.file

    @property
    def exhausted(self) -> bool:
        """Whether the budget is used up: calls are no longer followed."""
        return self.budget <= 0

    def emit(
        self,
        kind: EventKind,
        node: ast.AST,
        target: Value | None = None,
        arguments: tuple[Value, ...] = (),
        certain: bool = True,
    ) -> None:
        """Write an event at the end of the current trace."""
        self.trace.append(Event(kind, node, self.file, target, arguments, certain))

    def add(self, step: Step) -> None:
        """Write a step at the end of the current trace."""
        self.trace.append(step)

    def recording(self, into: Trace) -> Meanwhile:
        """Write events into another trace meanwhile."""
        return Meanwhile(self, "trace", into)

    def muted(self) -> Meanwhile:
        """Look something up without leaving a trace."""
        return Meanwhile(self, "trace", [])

    def gradients_as(self, scope: str) -> Meanwhile:
        """Inside a scope of this kind, what is computed has a graph or none.

        ``graphless_since`` is the birth since when nothing has one, None while there may be one.
        """
        since = self.graphless_since
        if scope in ("no_grad", "inference_mode"):
            since = Unknown().birth if since is None else since
        elif scope.removeprefix("maybe ") in ("enable_grad", "set_grad_enabled"):
            since = None
        return Meanwhile(self, "graphless_since", since)

    def noting(self) -> Meanwhile:
        """Remember the values of a test's parts, so that asking about it runs nothing again."""
        return Meanwhile(self, "noted", {} if self.noted is None else self.noted)

    def inside(self, frame: Frame) -> Meanwhile:
        """Run in another frame meanwhile."""
        return Meanwhile(self, "frame", frame)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Run what belongs to an earlier moment: no condition and no call is around it."""
        outer = self.conditional_depth, self.active, self.noted, self.graphless_since
        self.conditional_depth, self.active, self.noted, self.graphless_since = 0, [], None, None
        try:
            yield
        finally:
            self.conditional_depth, self.active, self.noted, self.graphless_since = outer

    def conditionally(self) -> Meanwhile:
        """What is assigned meanwhile may or may not happen."""
        return Meanwhile(self, "conditional_depth", self.conditional_depth + 1)

    def module_environment(self, file: FileModel) -> ModuleEnvironment:
        """The environment of a file's top level."""
        if file not in self._memory.modules:
            self._memory.modules[file] = ModuleEnvironment(
                lambda name: self._find_global(file, name)
            )
        return self._memory.modules[file]

    def symbolic_instance(self, definition: ClassDefinition) -> Instance:
        """An object of a class as its constructor makes it from unknown arguments."""
        if definition not in self._memory.instances:
            from trainlint.analysis.interpreter.calls import construct_symbolic

            instance = Instance(definition, symbolic=True, hint="self")
            self._memory.instances[definition] = instance
            construct_symbolic(self, instance)
        return self._memory.instances[definition]

    def construction_of(self, definition: ClassDefinition) -> Trace:
        """What the constructor does when the object of unknown arguments is made."""
        return self._memory.constructions.setdefault(definition, [])

    def symbolic_parameters(
        self, function: FunctionDefinition, receiver: Value | None
    ) -> Environment:
        """An environment in which the function's parameters are unknown values."""
        environment = Environment(self.module_environment(function.file))
        arguments = function.node.args
        named = [*function.parameters, *arguments.kwonlyargs]
        extra = [item for item in (arguments.vararg, arguments.kwarg) if item is not None]
        for position, parameter in enumerate([*named, *extra]):
            annotation = (
                function.file.qualified(parameter.annotation) if parameter.annotation else None
            )
            value: Value = Unknown(hint=parameter.arg, annotation=annotation)
            if position == 0 and receiver is not None and not function.is_static:
                value = receiver
            environment.values[parameter.arg] = value
        return environment

    def definition_value(self, dotted: str) -> Value:
        """What a dotted name stands for: the project's own class or function, or a library's."""
        key = (self.file, dotted)
        if key not in self._memory.definitions:
            self._memory.definitions[key] = self._definition(dotted)
        return self._memory.definitions[key]

    def _definition(self, dotted: str) -> Value:
        found = self.project.resolve(dotted, self.file)
        if isinstance(found, ClassDefinition):
            return ClassValue(found)
        if isinstance(found, FunctionDefinition):
            return FunctionValue(found, closure=self.module_environment(found.file))
        return External(dotted)

    def _find_global(self, file: FileModel, name: str) -> Value | None:
        from trainlint.analysis.interpreter.expressions import evaluate

        bound = file.index.names_bound_in(file.tree).get(name, [])
        if not bound:
            return self._from_star_imports(file, name)
        with self.inside(Frame(file, self.module_environment(file))), self.muted():
            found = [
                value
                for item in bound[-3:]
                if (value := self._bound_value(file, item, evaluate)) is not None
            ]
        return choice(found) if found else Unknown(hint=name)

    def _bound_value(
        self, file: FileModel, bound: ast.AST, evaluate: Callable[[Machine, ast.expr], Value]
    ) -> Value | None:
        if isinstance(bound, ast.ClassDef):
            return ClassValue(file.classes[bound.name])
        if isinstance(bound, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return FunctionValue(file.definition(bound), closure=self.module_environment(file))
        if isinstance(bound, ast.alias):
            dotted = file.names.imported_by(bound)
            return self.definition_value(dotted)
        statement = file.index.parents.get(bound)
        if isinstance(statement, ast.Assign) and bound in statement.targets and not self.exhausted:
            value = evaluate(self, statement.value)
            value.hint = value.hint or getattr(bound, "id", "")
            return value
        return None

    def _from_star_imports(self, file: FileModel, name: str) -> Value | None:
        if hasattr(builtins, name):
            return None
        for module in file.names.star_modules():
            found = self.project.resolve(f"{module}.{name}", file)
            if isinstance(found, ClassDefinition):
                return ClassValue(found)
            if isinstance(found, FunctionDefinition):
                return FunctionValue(found, closure=self.module_environment(found.file))
        for module in file.names.star_modules():
            passed_on = self.project.passed_on(module, name, file)
            if passed_on is not None:
                return External(passed_on)
        dotted = file.names.star_import_of(name)
        return External(dotted) if dotted else None
