"""What an expression stands for, told from the assignments in the file without running them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import roles
from trainlint.analysis.knowledge.modules import RETURNS_ITSELF
from trainlint.analysis.roles import Role

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel


def last_name(node: ast.expr) -> str:
    """What a reader would call an expression: ``c`` for ``a.b.c``, ``a.c[0]`` and ``c()``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, (ast.Subscript, ast.Starred, ast.Await)):
        return last_name(node.value)
    return last_name(node.func) if isinstance(node, ast.Call) else ""


def assigned_values(file: FileModel, node: ast.expr) -> Iterator[ast.expr]:
    """All expressions that the file assigns to a variable or to an attribute of ``self``."""
    if isinstance(node, ast.Name):
        for bound in file.index.bindings(node.id, file.index.scope(node)):
            value = assigned_at(file, bound)
            if value is not None:
                yield value
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner = file.index.enclosing_class(node)
        if owner is not None:
            for statement, _ in file.attribute_assignments(owner).get(node.attr, []):
                if statement.value is not None:
                    yield statement.value


def assigned_at(file: FileModel, target: ast.AST) -> ast.expr | None:
    """What is assigned where ``target`` is bound whole; None where it is unpacked or no value."""
    parent = file.index.parents.get(target)
    if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
        return parent.value
    return None


def receiver_role(file: FileModel, node: ast.expr) -> tuple[Role, bool]:
    """The part in training that an expression plays, and True where that is known, not guessed.

    Known are objects whose making the file shows, parameters with a telling annotation, and
    ``self`` in a class that is a module.
    """
    found = {made_role(file, value) for value in assigned_values(file, node)}
    found.discard(None)
    if len(found) == 1 and (known := found.pop()) is not None:
        return known, True
    if isinstance(node, ast.Name) and (declared := _declared_role(file, node)) is not None:
        return declared, True
    return roles.by_name(last_name(node)), False


def is_plain_object(file: FileModel, node: ast.expr) -> bool:
    """Whether an expression holds an object of a class of the project without foreign bases."""
    classes = [
        made.func
        for value in assigned_values(file, node)
        if isinstance(made := unchained(value), ast.Call)
    ]
    if isinstance(node, ast.Name):
        bound = file.index.bindings(node.id, file.index.scope(node))
        classes += [
            item.annotation
            for item in bound
            if isinstance(item, ast.arg) and item.annotation is not None
        ]
    found = [file.resolve_class(item) for item in classes]
    return bool(found) and all(
        item is not None and not any(True for _ in item.external_bases()) for item in found
    )


def made_role(file: FileModel, value: ast.expr) -> Role | None:
    """The part that a newly made object plays: ``torch.optim.SGD(...)``, ``Net().to(device)``."""
    made = unchained(value)
    if not isinstance(made, ast.Call):
        return None
    return _role_of_class(file, made.func)


def unchained(value: ast.expr) -> ast.expr:
    """``Net()`` of ``Net().to(device).eval()``: without the methods that return the object."""
    while (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and isinstance(value.func.value, ast.Call)
        and value.func.attr in RETURNS_ITSELF
    ):
        value = value.func.value
    return value


def _role_of_class(file: FileModel, node: ast.expr) -> Role | None:
    dotted = file.qualified(node)
    known = roles.of_library_class(dotted) if dotted else None
    if known is not None:
        return known
    definition = file.resolve_class(node)
    return roles.of_class(definition) if definition is not None else None


def _declared_role(file: FileModel, node: ast.Name) -> Role | None:
    bound = file.index.bindings(node.id, file.index.scope(node))
    if len(bound) != 1 or not isinstance(bound[0], ast.arg):
        return None
    parameter = bound[0]
    if parameter.annotation is not None:
        return roles.of_annotation(file.qualified(parameter.annotation)) or _role_of_class(
            file, parameter.annotation
        )
    function = file.index.enclosing_function(node)
    if function is None or not function.args.args or function.args.args[0] is not parameter:
        return None
    owner = file.definition(function).owner
    return roles.of_class(owner) if owner is not None else None
