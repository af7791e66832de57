"""What rules read: one file, its names, classes and functions, and how its code runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from trainlint.analysis.definitions import ClassDefinition, FunctionDefinition
from trainlint.analysis.index import Function, TreeIndex
from trainlint.analysis.names import Names, canonical
from trainlint.analysis.source import SourceFile

if TYPE_CHECKING:
    from trainlint.analysis.interpreter.runs import Run
    from trainlint.analysis.loaders import Loader
    from trainlint.analysis.loss_calls import LossCall
    from trainlint.analysis.project import Project
    from trainlint.analysis.protocols.schedules import SchedulerStep

AttributeAssignments = dict[str, list[tuple[ast.Assign | ast.AnnAssign, FunctionDefinition]]]
_Node = TypeVar("_Node", bound=ast.AST)


@dataclass(frozen=True)
class Reading:
    """The names and attributes that a test reads, and whether it calls anything."""

    test: ast.expr
    names: tuple[ast.Name, ...]
    attributes: frozenset[str]
    calls: bool

    @cached_property
    def text(self) -> str:
        """The test as text: the same for the same question."""
        return ast.unparse(self.test)


class FileModel:
    """One file as the rules see it. Everything is computed when first asked for, once."""

    def __init__(self, source: SourceFile, project: Project, module: str, package: str) -> None:
        self.source = source
        self.path: Path = source.path
        self.project = project
        self.module = module
        self.package = package
        self._readings: dict[ast.expr, Reading] = {}
        self._affirmed: dict[ast.Compare, ast.Compare] = {}
        self._stored: dict[ast.stmt, frozenset[str]] = {}

    @property
    def tree(self) -> ast.Module:
        """The file's syntax tree."""
        return self.source.tree

    @cached_property
    def index(self) -> TreeIndex:
        """Parents, nodes by type and scopes."""
        return TreeIndex(self.tree)

    @cached_property
    def names(self) -> Names:
        """Lexical name resolution."""
        return Names(self.index, self.module, self.package)

    @cached_property
    def classes(self) -> dict[str, ClassDefinition]:
        """The classes of the file by name, nested ones included; top-level ones win."""
        found = sorted(self.index.nodes(ast.ClassDef), key=self._is_nested, reverse=True)
        return {node.name: ClassDefinition(node, self) for node in found}

    @cached_property
    def functions(self) -> dict[str, FunctionDefinition]:
        """The functions at the top level of the file, by name."""
        return {
            node.name: self.definition(node)
            for node in self.index.functions()
            if isinstance(self.index.scope(node), ast.Module)
        }

    @cached_property
    def _definitions(self) -> dict[Function, FunctionDefinition]:
        methods = {
            method.node: method
            for cls in self.classes.values()
            for method in cls.own_methods.values()
        }
        others = (node for node in self.index.functions() if node not in methods)
        return {**methods, **{node: FunctionDefinition(node, self) for node in others}}

    def definition(self, node: Function) -> FunctionDefinition:
        """The definition that a ``def`` node makes."""
        return self._definitions[node]

    def nodes(self, node_type: type[_Node]) -> list[_Node]:
        """All nodes of exactly this type, in source order."""
        return self.index.nodes(node_type)

    def qualified(self, node: ast.AST) -> str | None:
        """The dotted name that an expression refers to, or None where that is not certain."""
        found = self.names.qualified(node)
        return self._through_stars(node, found) if self._star_modules else found

    @cached_property
    def _star_modules(self) -> list[str]:
        return self.names.star_modules()

    def _through_stars(self, node: ast.AST, found: str | None) -> str | None:
        """``from utils import *`` hands on what ``utils`` imports: ``torch``, say."""
        attributes: list[str] = []
        root = node
        while isinstance(root, ast.Attribute):
            attributes.insert(0, root.attr)
            root = root.value
        if not isinstance(root, ast.Name) or self.index.bindings(root.id, self.index.scope(root)):
            return found
        if root.id not in self._passed_on:
            targets = (self.project.passed_on(star, root.id, self) for star in self._star_modules)
            self._passed_on[root.id] = next((target for target in targets if target), None)
        target = self._passed_on[root.id]
        return canonical(".".join([target, *attributes])) if target else found

    @cached_property
    def _passed_on(self) -> dict[str, str | None]:
        return {}

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """All calls of the functions or classes with these qualified names."""
        wanted = frozenset(names)
        for call in self.nodes(ast.Call):
            if self.qualified(call.func) in wanted:
                yield call

    def imported(self, name: str) -> str | None:
        """The dotted name behind a top-level name that is an import or an alias of one."""
        bound = self.index.names_bound_in(self.tree).get(name, [])
        for item in bound:
            if isinstance(item, ast.alias):
                return self.names.imported_by(item)
        return None

    def resolve_class(self, node: ast.expr) -> ClassDefinition | None:
        """The project's class that an expression names, in this file or another."""
        found = self.resolve(node)
        return found if isinstance(found, ClassDefinition) else None

    def resolve(self, node: ast.expr) -> ClassDefinition | FunctionDefinition | None:
        """The project's class or function that an expression names, in this file or another."""
        if isinstance(node, ast.Name):
            bound = self.index.bindings(node.id, self.index.scope(node))
            if len(bound) == 1 and isinstance(bound[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
                return self.definition(bound[0])
            if bound and all(isinstance(item, ast.ClassDef) for item in bound):
                return self.classes.get(node.id)
        dotted = self.qualified(node)
        return self.project.resolve(dotted, self) if dotted else None

    @cached_property
    def counters(self) -> frozenset[str]:
        """Attributes that some code of the file counts up or down."""
        return frozenset(
            node.target.attr
            for node in self.nodes(ast.AugAssign)
            if isinstance(node.target, ast.Attribute)
        )

    @cached_property
    def _attribute_assignments(self) -> dict[ast.ClassDef, AttributeAssignments]:
        found: dict[ast.ClassDef, AttributeAssignments] = {}
        statements: list[ast.Assign | ast.AnnAssign] = [
            *self.nodes(ast.Assign),
            *self.nodes(ast.AnnAssign),
        ]
        for statement in statements:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                self._note_attribute(target, statement, found)
        return found

    def _note_attribute(
        self,
        target: ast.expr,
        statement: ast.Assign | ast.AnnAssign,
        found: dict[ast.ClassDef, AttributeAssignments],
    ) -> None:
        is_self = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
        function = self.index.enclosing_function(statement)
        owner = self.index.enclosing_class(statement)
        if not is_self or function is None or owner is None:
            return
        assert isinstance(target, ast.Attribute)
        assert isinstance(target.value, ast.Name)
        method = self.definition(function)
        if method.parameters and method.parameters[0].arg == target.value.id:
            found.setdefault(owner, {}).setdefault(target.attr, []).append((statement, method))

    def attribute_assignments(self, owner: ast.ClassDef) -> AttributeAssignments:
        """All ``self.name = value`` in the methods of a class, by name, in source order."""
        return self._attribute_assignments.get(owner, {})

    @cached_property
    def runs(self) -> list[Run]:
        """How the file's code runs: together the runs reach all of it that matters for training.

        Unit tests have none: they train toys, and break the rules of training on purpose.
        """
        if self.is_unit_test:
            return []
        from trainlint.analysis.interpreter import runs_of

        return runs_of(self)

    @cached_property
    def loaders(self) -> list[Loader]:
        """The data loaders that the runs reaching this file make, here and in its helpers."""
        from trainlint.analysis.loaders import loaders_of

        return list(loaders_of(self))

    @cached_property
    def loss_calls(self) -> list[LossCall]:
        """The calls of torch's losses that this file is answerable for."""
        from trainlint.analysis.loss_calls import loss_calls

        return list(loss_calls(self))

    @cached_property
    def scheduler_steps(self) -> list[SchedulerStep]:
        """The steps of torch's learning-rate schedulers in this file, as its callers see them."""
        from trainlint.analysis.protocols.schedules import scheduler_steps

        return list(scheduler_steps(self))

    def reading(self, test: ast.expr) -> Reading:
        """What a test reads, found once for each test however often it is evaluated."""
        if test not in self._readings:
            nodes = list(ast.walk(test))
            self._readings[test] = Reading(
                test,
                tuple(node for node in nodes if isinstance(node, ast.Name)),
                frozenset(node.attr for node in nodes if isinstance(node, ast.Attribute)),
                any(isinstance(node, (ast.Call, ast.Await)) for node in nodes),
            )
        return self._readings[test]

    def affirmed(self, test: ast.Compare) -> ast.Compare:
        """``a == b`` for ``a != b`` or ``a is not b``, always the same node for the same test."""
        if test not in self._affirmed:
            equal = ast.Compare(test.left, [ast.Eq()], test.comparators)
            self._affirmed[test] = ast.copy_location(equal, test)
        return self._affirmed[test]

    def names_stored_in(self, statement: ast.stmt) -> frozenset[str]:
        """The names that a statement, with all inside it, assigns."""
        if statement not in self._stored:
            self._stored[statement] = frozenset(
                node.id
                for node in self.index.nodes_in(statement, ast.Name)
                if isinstance(node.ctx, ast.Store)
            )
        return self._stored[statement]

    @cached_property
    def is_unit_test(self) -> bool:
        """Whether the file holds unit tests; a script ``test_net.py`` that evaluates is none."""
        stem, text = self.path.stem, self.source.text
        is_named_so = stem == "tests" or stem.startswith("test_") or stem.endswith("_test")
        if not is_named_so:
            below = self.path.parts[len(self.project.root.parts) : -1]
            return "tests" in below and "assert" in text
        return any(word in text for word in ("def test_", "pytest", "unittest"))

    def segment(self, node: ast.stmt) -> str:
        """The source lines of a statement, whole."""
        return "".join(self.source.lines[node.lineno - 1 : node.end_lineno])

    def enclosing_class(self, node: ast.AST) -> ClassDefinition | None:
        """The class whose body holds ``node``."""
        found = self.index.enclosing_class(node)
        return self.classes.get(found.name) if found is not None else None

    def _is_nested(self, node: ast.ClassDef) -> bool:
        return not isinstance(self.index.scope(node), ast.Module)
