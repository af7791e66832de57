"""The one walk over a file's tree: parents, nodes by type, and what each scope binds."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from functools import cached_property
from typing import TypeVar, cast

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Node = TypeVar("_Node", bound=ast.AST)

_BINDERS = frozenset(
    {
        ast.Name, ast.arg, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.alias,
        ast.Global, ast.Nonlocal,
    }
)  # fmt: skip
_WITHOUT_NODES = frozenset(
    {
        "arg", "asname", "attr", "conversion", "id", "is_async", "kind", "kwd_attrs", "level",
        "module", "rest", "simple", "type_comment",
    }
)  # fmt: skip
_WITHOUT_PLACE = frozenset({"ctx", "op", "ops"})


class _ChildFields(dict[type[ast.AST], tuple[str, ...]]):
    """For each kind of node the fields that can hold nodes with a place in the source, last first.

    Operators and contexts have none.
    """

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        left_out = _WITHOUT_NODES | _WITHOUT_PLACE
        names = [name for name in kind._fields if name not in left_out]
        self[kind] = () if kind is ast.Constant else tuple(reversed(names))
        return self[kind]


_CHILD_FIELDS = _ChildFields()


class TreeIndex:
    """Answers where a node stands and what a name is bound to, without walking again."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.parents: dict[ast.AST, ast.AST] = {}
        self._order: list[ast.AST] = []
        self._by_type: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        self._bindings: dict[ast.AST, dict[str, list[ast.AST]]] = defaultdict(dict)
        self._walk()

    def nodes(self, node_type: type[_Node]) -> list[_Node]:
        """All nodes of exactly this type, in source order."""
        return cast("list[_Node]", self._by_type.get(node_type, []))

    def nodes_in(self, root: ast.AST, node_type: type[_Node]) -> list[_Node]:
        """The nodes of exactly this type that ``root`` is or holds, in source order."""
        nodes = self.nodes(node_type)
        first, end = self._extent(root)
        place = self._places.__getitem__
        return nodes[bisect_left(nodes, first, key=place) : bisect_left(nodes, end, key=place)]

    def all_in(self, root: ast.AST) -> list[ast.AST]:
        """``root`` and all nodes that it holds, in source order."""
        first, end = self._extent(root)
        return self._order[first:end]

    def holds(self, root: ast.AST, node: ast.AST) -> bool:
        """Whether ``root`` is ``node``, or holds it."""
        if node not in self._places or root not in self._places:
            return False
        first, end = self._extent(root)
        return first <= self._places[node] < end

    def functions(self) -> list[Function]:
        """All functions and methods, nested ones included."""
        return [*self.nodes(ast.FunctionDef), *self.nodes(ast.AsyncFunctionDef)]

    def scope(self, node: ast.AST) -> Scope:
        """The scope that a name at ``node`` is looked up in first."""
        child, parent = node, self.parents.get(node)
        while parent is not None:
            if isinstance(parent, _SCOPES) and _is_inside(child, parent):
                return parent
            child, parent = parent, self.parents.get(parent)
        return self.tree

    def enclosing_function(self, node: ast.AST) -> Function | None:
        """The nearest function whose body holds ``node``."""
        scope: Scope = self.scope(node)
        while not isinstance(scope, ast.Module):
            if isinstance(scope, _FUNCTIONS):
                return scope
            scope = self.scope(scope)
        return None

    def enclosing_class(self, node: ast.AST) -> ast.ClassDef | None:
        """The nearest class whose body holds ``node``, through methods and nested functions."""
        scope = self.scope(node)
        while not isinstance(scope, ast.Module):
            if isinstance(scope, ast.ClassDef):
                return scope
            scope = self.scope(scope)
        return None

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement that ``node`` is, or is part of."""
        current: ast.AST | None = node
        while current is not None and not isinstance(current, ast.stmt):
            current = self.parents.get(current)
        if current is None:
            raise ValueError("the module itself is no statement")
        return current

    def bindings(self, name: str, scope: Scope) -> list[ast.AST]:
        """What ``name`` is bound by in the nearest scope outwards that binds it.

        Names (stores), imports' aliases, definitions and parameters; empty for builtins and
        names from star imports.
        """
        current: Scope = scope
        while True:
            found = self._bindings[current].get(name)
            skip = isinstance(current, ast.ClassDef) and current is not scope
            if found and not skip:
                return found
            if isinstance(current, ast.Module):
                return []
            current = self.scope(current)

    def names_bound_in(self, scope: Scope) -> dict[str, list[ast.AST]]:
        """All names that this very scope binds."""
        return self._bindings[scope]

    def _walk(self) -> None:
        """Visit every node once, in source order.

        What stands in the loop runs half a million times for a large project.
        """
        parents, by_type, order = self.parents, self._by_type, self._order
        name, binders, scopes, fields = ast.Name, _BINDERS, _SCOPES, _CHILD_FIELDS
        scope: ast.AST = self.tree
        outer_scopes: list[ast.AST] = []
        stack: list[ast.AST | None] = [self.tree]
        while stack:
            node = stack.pop()
            if node is None:  # the end of a scope
                scope = outer_scopes.pop()
                continue
            kind = type(node)
            by_type[kind].append(node)
            order.append(node)
            if kind is name:
                if type(node.ctx) is not ast.Load:  # type: ignore[attr-defined]
                    self._bind(node, scope)
                continue
            if kind in binders:
                self._bind(node, scope)
            if kind in scopes:
                outer_scopes.append(scope)
                scope = node
                stack.append(None)
            for field in fields[kind]:
                value = getattr(node, field)
                if type(value) is list:
                    for item in reversed(value):
                        if isinstance(item, ast.AST):
                            parents[item] = node
                            stack.append(item)
                elif isinstance(value, ast.AST):
                    parents[value] = node
                    stack.append(value)

    def _bind(self, node: ast.AST, scope: ast.AST) -> None:
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                return
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = node.name
        elif isinstance(node, ast.alias):
            name = node.asname or node.name.partition(".")[0]
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            self._share(node, scope)
            return
        else:
            return
        self._bindings[scope].setdefault(name, []).append(node)

    def _share(self, node: ast.Global | ast.Nonlocal, scope: ast.AST) -> None:
        module = self._bindings[self.tree]
        for name in node.names:
            self._bindings[scope][name] = module.setdefault(name, [])

    @cached_property
    def _places(self) -> dict[ast.AST, int]:
        """The number of each node in the order of the walk."""
        return dict(zip(self._order, range(len(self._order)), strict=True))

    def _extent(self, root: ast.AST) -> tuple[int, int]:
        """The number of a node, and the one after the last node that it holds."""
        last: ast.AST | None = root
        inner = root
        while last is not None:
            inner, last = last, _last_child(last)
        return self._places[root], self._places[inner] + 1


def _last_child(node: ast.AST) -> ast.AST | None:
    for field in _CHILD_FIELDS[type(node)]:
        value = getattr(node, field)
        for item in reversed(value) if isinstance(value, list) else (value,):
            if isinstance(item, ast.AST):
                return item
    return None


def _is_inside(child: ast.AST, scope: ast.AST) -> bool:
    """Decorators, defaults and bases are evaluated outside the scope that they belong to."""
    if isinstance(scope, ast.ClassDef):
        return isinstance(child, ast.stmt)
    if isinstance(scope, _FUNCTIONS):
        return isinstance(child, (ast.stmt, ast.arguments))
    return True
