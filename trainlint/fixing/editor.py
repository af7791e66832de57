"""What a rule's repair function receives: the edits it may ask for."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import libcst as cst

from trainlint.fixing import statements
from trainlint.fixing.arguments import argument_at
from trainlint.fixing.document import Document, Statement
from trainlint.fixing.errors import CannotFix
from trainlint.fixing.expressions import (
    ExpressionEdit,
    calling,
    replacement,
    unwrapping,
    wrapping,
)
from trainlint.fixing.imports import ensure_import
from trainlint.fixing.parsing import parse_call_argument, parse_expression
from trainlint.fixing.plan import ArgumentsChange, NodeChange, Plan, TextChange


class Editor:
    """Describes edits of one file; every method takes ``ast`` nodes of the file as it was checked.

    Nothing changes while the repair function runs: the edits are carried out together afterwards,
    or not at all. Node, line and column always mean the file as it was checked, also after other
    edits were described. Edits inside each other combine: wrap a statement, rename a call in it.

    ``code`` is Python source starting in column 0, its own blocks indented by any amount; the
    engine adapts indentation and line ends to the file. Expressions are put in parentheses where
    their new place needs it. Comments stay: those above a statement with the statement, those at
    the end of a line with that line.

    Every method raises ``CannotFix`` where the edit cannot be made (for example a node inside an
    f-string whose position Python does not know, or a statement that is no member of a block, such
    as an ``elif``); let it pass, and the repair is dropped.
    """

    def __init__(self, document: Document, plan: Plan) -> None:
        self._document = document
        self._plan = plan

    # Reading

    def source(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        """The text of ``node`` as it stands in the file, without parentheses around it."""
        return self._document.source(node)

    # Expressions

    def replace(self, expression: ast.expr, code: str) -> None:
        """Put the expression ``code`` in the place of ``expression``."""
        target = self._document.expression(expression)
        self._change_expression(target, replacement(self._document, target, code))

    def replace_with_node(self, expression: ast.expr, part: ast.expr) -> None:
        """Keep only ``part`` of ``expression``: ``softmax(z, 1)`` becomes ``z``.

        Edits inside ``part`` are kept.
        """
        target = self._document.expression(expression)
        kept = self._document.expression(part)
        self._change_expression(target, unwrapping(self._document, target, kept))

    def wrap(self, expression: ast.expr, function: str) -> None:
        """Turn ``x`` into ``function(x)``."""
        target = self._document.expression(expression)
        self._change_expression(target, wrapping(self._document, target, function))

    def call(self, expression: ast.expr, arguments: str = "") -> None:
        """Turn ``f`` into ``f(arguments)``."""
        target = self._document.expression(expression)
        self._change_expression(target, calling(arguments))

    # Names

    def rename_attribute(self, attribute: ast.Attribute, name: str) -> None:
        """Turn ``x.old`` into ``x.name``."""
        self._rename(_attribute_name(self._document.expression(attribute)), name)

    def rename_function(self, call: ast.Call, name: str) -> None:
        """Give the called function another name: the last component of ``a.b.old(...)``."""
        function = self._document.expression(call.func)
        self._rename(
            function if isinstance(function, cst.Name) else _attribute_name(function), name
        )

    # Arguments of calls

    def rename_argument(self, call: ast.Call, old: str, new: str) -> None:
        """Turn ``f(old=x)`` into ``f(new=x)``."""
        target = self._call(call)
        keyword = target.args[argument_at(target, old)].keyword
        assert keyword is not None
        self._rename(keyword, new)

    def add_argument(self, call: ast.Call, code: str) -> None:
        """Add ``code`` (such as ``training=self.training``) as the last argument.

        A keyword argument goes last but before ``**options``; a positional one before the first
        keyword. One argument a line and a comma at the end are kept up.
        """
        target = self._call(call)
        argument = parse_call_argument(code)
        self._plan.points.append(self._document.span(target)[1] - 1)
        self._plan.changes.append(
            ArgumentsChange(target, lambda arguments: arguments.add(argument))
        )

    def set_argument(self, call: ast.Call, keyword: str, code: str) -> None:
        """Turn ``keyword=x`` into ``keyword=code``, or add it where the call has none."""
        for argument in call.keywords:
            if argument.arg == keyword:
                self.replace(argument.value, code)
                return
        self.add_argument(call, f"{keyword}={code}")

    def remove_argument(self, call: ast.Call, argument: str | int) -> None:
        """Remove the keyword argument of that name, or the argument with that index from 0."""
        target = self._call(call)
        place = argument_at(target, argument)
        self._plan.replaced.append(self._document.span(target.args[place]))
        self._plan.changes.append(
            ArgumentsChange(target, lambda arguments: arguments.remove(place))
        )

    def swap_arguments(self, call: ast.Call, first: str | int, second: str | int) -> None:
        """Exchange the values of two arguments, each given by keyword or index from 0."""
        target = self._call(call)
        places = argument_at(target, first), argument_at(target, second)
        self._plan.replaced += [self._document.span(target.args[place]) for place in places]
        self._plan.changes.append(
            ArgumentsChange(target, lambda arguments: arguments.swap(*places))
        )

    # Statements

    def insert_before(self, statement: ast.stmt, code: str) -> None:
        """Add statements before ``statement`` and the comments that stand directly above it."""
        statements.insert_before(self._document, self._plan, self._statement(statement), code)

    def insert_after(self, statement: ast.stmt, code: str) -> None:
        """Add statements after ``statement``."""
        statements.insert_after(self._document, self._plan, self._statement(statement), code)

    def insert_first(self, owner: ast.stmt | ast.Module, code: str) -> None:
        """Add statements at the top of the body of a function, class, loop, ``with``, ``if`` ...

        In a function, class or module they go below the docstring.
        """
        if isinstance(owner, ast.Module):
            target: cst.CSTNode = self._document.module
        else:
            target = self._statement(owner)
        statements.insert_first(self._document, self._plan, target, code)

    def remove(self, statement: ast.stmt) -> None:
        """Remove ``statement`` (a body that would be empty becomes ``pass``).

        The comment at its end goes with it; comments above it stay.
        """
        statements.remove(self._document, self._plan, self._statement(statement))

    def replace_statement(self, statement: ast.stmt, code: str) -> None:
        """Put the statements ``code`` in the place of ``statement``."""
        statements.replace(self._document, self._plan, self._statement(statement), code)

    def swap_statements(self, first: ast.stmt, second: ast.stmt) -> None:
        """Let two statements change places, each with its comments; neither holds the other."""
        statements.swap(self._document, self._plan, self._statement(first), self._statement(second))

    def move_before(self, statement: ast.stmt, other: ast.stmt) -> None:
        """Move ``statement``, with its comments, directly before ``other``."""
        target, other_target = self._statement(statement), self._statement(other)
        statements.move(self._document, self._plan, target, other_target, after=False)

    def move_after(self, statement: ast.stmt, other: ast.stmt) -> None:
        """Move ``statement``, with its comments, directly after ``other``."""
        target, other_target = self._statement(statement), self._statement(other)
        statements.move(self._document, self._plan, target, other_target, after=True)

    def wrap_statements(self, neighbours: Sequence[ast.stmt], header: str) -> None:
        """Indent neighbouring statements of one block below ``header``.

        ``header`` is the first line of a compound statement: ``with torch.no_grad():``.
        """
        targets = [self._statement(statement) for statement in neighbours]
        statements.wrap(self._document, self._plan, targets, header)

    def add_decorator(self, function: ast.stmt, decorator: str) -> None:
        """Add ``@decorator`` (``torch.no_grad()``) directly above ``def`` or ``class``."""
        target = self._statement(function)
        if not isinstance(target, (cst.FunctionDef, cst.ClassDef)):
            raise CannotFix("only functions and classes take decorators")
        added = cst.Decorator(parse_expression(decorator))
        self._plan.points.append(self._document.span(target)[0])
        self._plan.changes.append(
            NodeChange(target, lambda updated, _: _with_decorator(updated, added))
        )

    # The whole file

    def ensure_import(self, code: str) -> None:
        """Add the import statement ``code`` to the top of the file unless its names are bound.

        It goes below the imports that are there (so below ``from __future__``). Names that only an
        ``if TYPE_CHECKING:`` block binds count as not bound.
        """
        ensure_import(self._document, self._plan, code)

    def replace_text(
        self, line: int, column: int, end_line: int, end_column: int, code: str
    ) -> None:
        """Replace a stretch of text, for edits of comments.

        Lines count from 1, columns from 0 in characters; the end is exclusive. It cannot be
        combined with other kinds of edit in one repair.
        """
        start = self._document.offset(line, column)
        end = self._document.offset(end_line, end_column)
        self._plan.replaced.append((start, end))
        self._plan.changes.append(TextChange((start, end), code))

    def _statement(self, node: ast.stmt) -> Statement:
        return self._document.statement(node)

    def _call(self, node: ast.Call) -> cst.Call:
        call = self._document.expression(node)
        assert isinstance(call, cst.Call)
        return call

    def _change_expression(self, target: cst.BaseExpression, edit: ExpressionEdit) -> None:
        self._plan.replaced.append(self._document.span(target))
        self._plan.changes.append(NodeChange(target, edit))

    def _rename(self, target: cst.Name, name: str) -> None:
        if not name.isidentifier():
            raise CannotFix(f"not a name: {name}")
        self._plan.replaced.append(self._document.span(target))
        self._plan.changes.append(
            NodeChange(target, lambda updated, _: updated.with_changes(value=name))
        )


def _attribute_name(expression: cst.BaseExpression) -> cst.Name:
    if not isinstance(expression, cst.Attribute):
        raise CannotFix("what is called has no name")
    return expression.attr


def _with_decorator(updated: cst.CSTNode, decorator: cst.Decorator) -> cst.CSTNode:
    assert isinstance(updated, (cst.FunctionDef, cst.ClassDef))
    return updated.with_changes(decorators=[*updated.decorators, decorator])
