"""Where an import goes, and whether it is needed at all."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import libcst as cst

from trainlint.fixing.document import Document, Statement
from trainlint.fixing.errors import CannotFix
from trainlint.fixing.parsing import parse_ast, parse_statements
from trainlint.fixing.plan import BodyChange, Plan
from trainlint.fixing.statements import docstring_of, members_of


def ensure_import(document: Document, plan: Plan, code: str) -> None:
    """Add the import ``code`` unless the module binds its names already."""
    statements = parse_ast(code).body
    if not all(isinstance(statement, (ast.Import, ast.ImportFrom)) for statement in statements):
        raise CannotFix(f"not an import: {code}")
    bound = set(_bound_names(document.tree.body))
    if bound.issuperset(_bound_names(statements)):
        return
    lines = parse_statements(code)
    below = _last_of_the_imports(document.module)
    plan.changes.append(BodyChange(document.module, lambda body, _: body.add_import(lines, below)))


def _last_of_the_imports(module: cst.Module) -> Statement | None:
    """The last statement of the docstring and imports that begin the module."""
    docstring = docstring_of(module)
    last = docstring
    for statement in members_of(module):
        if isinstance(statement, (cst.Import, cst.ImportFrom)):
            last = statement
        elif isinstance(statement, (cst.If, cst.Try)) and _imports_only(statement.body):
            continue
        elif statement is not docstring:
            break
    return last


def _imports_only(body: cst.BaseSuite) -> bool:
    assert isinstance(body, (cst.IndentedBlock, cst.SimpleStatementSuite))
    return all(isinstance(member, (cst.Import, cst.ImportFrom)) for member in members_of(body))


def _bound_names(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """The names that statements of a module bind when they run."""
    for statement in statements:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            for alias in statement.names:
                yield alias.asname or alias.name.partition(".")[0]
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield statement.name
        elif not _is_for_type_checkers(statement):
            for node in ast.iter_child_nodes(statement):
                yield from _stored_names(node)
            for field in ("body", "orelse", "finalbody"):
                yield from _bound_names(getattr(statement, field, []))
            for handler in getattr(statement, "handlers", []):
                yield from _bound_names(handler.body)


def _stored_names(node: ast.AST) -> Iterator[str]:
    if not isinstance(node, (ast.stmt, ast.ExceptHandler)):
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id


def _is_for_type_checkers(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and any(
        isinstance(part, (ast.Name, ast.Attribute))
        and getattr(part, "id", getattr(part, "attr", "")) == "TYPE_CHECKING"
        for part in ast.walk(statement.test)
    )
