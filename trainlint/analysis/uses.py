"""How the code of a class or function uses one of its variables, told from the syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainlint.analysis.index import Function
from trainlint.analysis.receivers import last_name

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

_ONLY_READ = frozenset(
    {
        "len",
        "enumerate",
        "zip",
        "range",
        "reversed",
        "print",
        "iter",
        "isinstance",
        "hasattr",
        "list",
        "bool",
    }
)
# What these return holds the same elements.
_COPYING = frozenset({"enumerate", "iter", "list", "reversed", "tuple", "zip"})
_COPYING_METHODS = frozenset({"copy", "items", "values"})


@dataclass(frozen=True)
class Use:
    """One place where a collection is used.

    ``method``: the name of the method called on it, if that is the use. ``escapes``: it is handed
    to something that may do anything with it, or gets another name.
    """

    node: ast.expr
    method: ast.Call | None
    escapes: bool


def uses_of_attribute(file: FileModel, owner: ast.ClassDef, name: str) -> Iterator[Use]:
    """All reads of ``self.name`` in the class."""
    for node in file.nodes(ast.Attribute):
        if (
            node.attr == name
            and isinstance(node.ctx, ast.Load)
            and isinstance(node.value, ast.Name)
            and file.index.enclosing_class(node) is owner
        ):
            yield _use(file, node)


def uses_of_variable(file: FileModel, function: Function, name: str) -> Iterator[Use]:
    """All reads of a local variable of the function."""
    for node in file.nodes(ast.Name):
        if (
            node.id == name
            and isinstance(node.ctx, ast.Load)
            and file.index.enclosing_function(node) is function
        ):
            yield _use(file, node)


def _use(file: FileModel, node: ast.expr) -> Use:
    parent = file.index.parents.get(node)
    if isinstance(parent, ast.Attribute):
        call = file.index.parents.get(parent)
        if isinstance(call, ast.Call) and call.func is parent:
            return Use(node, call, parent.attr in _COPYING_METHODS and _escapes(file, call))
        return Use(node, None, parent.attr in ("append", "extend", "insert"))
    if isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Load):
        return Use(node, None, _is_kept(file, parent))
    return Use(node, None, _escapes(file, node))


def _escapes(file: FileModel, node: ast.expr) -> bool:
    """Whether a collection, or a copy made of it at once, is handed on or gets another name."""
    parent = file.index.parents.get(node)
    copy = _copy(file, node, parent)
    if copy is not None:
        return _escapes(file, copy)
    return _hands_on(node, parent) or _is_kept(file, node)


def _copy(file: FileModel, node: ast.expr, parent: ast.AST | None) -> ast.expr | None:
    """``list(layers)``, ``[layer for layer in layers]``: another collection of the elements."""
    if isinstance(parent, ast.Dict):
        return parent
    if isinstance(parent, ast.Call) and node in parent.args:
        return parent if last_name(parent.func) in _COPYING else None
    if isinstance(parent, ast.comprehension) and parent.iter is node:
        made = file.index.parents.get(parent)
        if isinstance(made, (ast.ListComp, ast.GeneratorExp)):
            return made if isinstance(made.elt, ast.Name) else None
        if isinstance(made, ast.DictComp):
            return made if isinstance(made.value, ast.Name) else None
    return None


def _hands_on(node: ast.expr, parent: ast.AST | None) -> bool:
    if isinstance(parent, (ast.Starred, ast.keyword)):
        return True
    if not isinstance(parent, ast.Call) or parent.func is node:
        return False
    return last_name(parent) not in _ONLY_READ


def _is_kept(file: FileModel, node: ast.expr) -> bool:
    """Whether a statement gives the value, or an element of it, another name that lasts."""
    statement = file.index.parents.get(node)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is not node:
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return any(not isinstance(target, ast.Name) for target in targets) or not isinstance(
        node, ast.Subscript
    )
