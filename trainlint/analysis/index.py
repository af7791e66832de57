"""The one walk over a file's tree: parents, nodes by type, and what each scope binds."""

from __future__ import annotations

import ast
from collections import defaultdict
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
_WITHOUT_PLACE = frozenset({"ctx", "op", "ops"})
_CHILD_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}


def _child_fields(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a kind of node that can hold nodes, operators and contexts apart."""
    if kind is ast.Constant:
        return ()
    return tuple(name for name in kind._fields if name not in _WITHOUT_PLACE)


class TreeIndex:
    """Answers where a node stands and what a name is bound to, without walking again."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.parents: dict[ast.AST, ast.AST] = {}
        self._by_type: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        self._bindings: dict[Scope, dict[str, list[ast.AST]]] = defaultdict(dict)
        self._walk()

    def nodes(self, node_type: type[_Node]) -> list[_Node]:
        """All nodes of exactly this type, in source order."""
        return cast("list[_Node]", self._by_type.get(node_type, []))

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
        stack: list[tuple[ast.AST, Scope]] = [(self.tree, self.tree)]
        parents, by_type, bind = self.parents, self._by_type, self._bind
        while stack:
            node, scope = stack.pop()
            kind = type(node)
            by_type[kind].append(node)
            if kind in _BINDERS:
                bind(node, scope)
            fields = _CHILD_FIELDS.get(kind)
            if fields is None:
                fields = _CHILD_FIELDS[kind] = _child_fields(kind)
            if not fields:
                continue
            inner = node if kind in _SCOPES else scope
            first = len(stack)
            for field in fields:
                value = getattr(node, field, None)
                if value is None:
                    continue
                if type(value) is list:
                    for item in value:
                        if isinstance(item, ast.AST):
                            parents[item] = node
                            stack.append((item, inner))  # type: ignore[arg-type]
                elif isinstance(value, ast.AST):
                    parents[value] = node
                    stack.append((value, inner))  # type: ignore[arg-type]
            stack[first:] = stack[first:][::-1]

    def _bind(self, node: ast.AST, scope: Scope) -> None:
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

    def _share(self, node: ast.Global | ast.Nonlocal, scope: Scope) -> None:
        module = self._bindings[self.tree]
        for name in node.names:
            self._bindings[scope][name] = module.setdefault(name, [])


def _is_inside(child: ast.AST, scope: ast.AST) -> bool:
    """Decorators, defaults and bases are evaluated outside the scope that they belong to."""
    if isinstance(scope, ast.ClassDef):
        return child in scope.body
    if isinstance(scope, _FUNCTIONS):
        return child in scope.body or isinstance(child, ast.arguments)
    return True
