"""Edits of statements: from what a rule asks to changes of the blocks concerned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import libcst as cst

from trainlint.fixing.body import Body
from trainlint.fixing.document import Block, Document, Line, Span, Statement
from trainlint.fixing.errors import CannotFix
from trainlint.fixing.parsing import parse_statements
from trainlint.fixing.plan import BodyChange, NodeChange, Plan, Rebuilt
from trainlint.fixing.white_space import split_at_last_blank, with_empty_blank_lines

BodyEdit = Callable[[Body, Rebuilt], None]


def insert_before(document: Document, plan: Plan, statement: Statement, code: str) -> None:
    """Add lines above ``statement``."""
    lines = _lines_of(code)
    block = document.block_of(statement)
    plan.points.append(document.span(statement)[0])
    plan.changes.append(
        BodyChange(block, lambda body, _: body.insert_before(statement, lines), (statement,))
    )


def insert_after(document: Document, plan: Plan, statement: Statement, code: str) -> None:
    """Add lines below ``statement``."""
    lines = _lines_of(code)
    block = document.block_of(statement)
    plan.points.append(document.span(statement)[1])
    plan.changes.append(
        BodyChange(block, lambda body, _: body.insert_after(statement, lines), (statement,))
    )


def insert_first(document: Document, plan: Plan, owner: cst.CSTNode, code: str) -> None:
    """Add lines at the top of the body of ``owner``, below a docstring."""
    lines = _lines_of(code)
    block = owner if isinstance(owner, cst.Module) else getattr(owner, "body", None)
    if not isinstance(block, (cst.Module, cst.IndentedBlock, cst.SimpleStatementSuite)):
        raise CannotFix("this statement has no body")
    has_docstring = isinstance(owner, (cst.Module, cst.FunctionDef, cst.ClassDef))
    docstring = docstring_of(block) if has_docstring else None
    members = members_of(block)
    if isinstance(block, cst.Module):
        document.load_first_statement()
    if docstring is not None:
        plan.points.append(document.span(docstring)[1])
    elif members:
        plan.points.append(document.span(members[0])[0])
    named = () if docstring is None else (docstring,)
    plan.changes.append(
        BodyChange(block, lambda body, _: body.insert_first(lines, docstring), named)
    )


def remove(document: Document, plan: Plan, statement: Statement) -> None:
    """Take ``statement`` out of its block."""
    block = document.block_of(statement)
    plan.statements.append(document.span(statement))
    is_small = isinstance(statement, cst.BaseSmallStatement)
    if is_small and members_of(block) == [statement] and not isinstance(block, cst.Module):
        plan.changes.append(NodeChange(statement, lambda _updated, _: cst.Pass()))
        return
    plan.changes.append(BodyChange(block, lambda body, _: body.remove(statement), (statement,)))


def replace(document: Document, plan: Plan, statement: Statement, code: str) -> None:
    """Put lines in the place of ``statement``."""
    lines = _lines_of(code)
    block = document.block_of(statement)
    plan.statements.append(document.span(statement))
    small = _single_small_statement(lines)
    if small is not None and isinstance(statement, cst.BaseSmallStatement):
        new = small.with_changes(semicolon=statement.semicolon)
        plan.changes.append(NodeChange(statement, lambda _updated, _: new))
        return
    plan.changes.append(
        BodyChange(block, lambda body, _: body.replace(statement, lines), (statement,))
    )


def swap(document: Document, plan: Plan, first: Statement, second: Statement) -> None:
    """Let two statements change places."""
    _refuse_overlap(document.span(first), document.span(second))
    for place, moved in ((first, second), (second, first)):
        block = document.block_of(place)
        plan.statements.append(document.span(place))
        plan.changes.append(BodyChange(block, _putting(document, place, moved), (place,)))


def move(
    document: Document, plan: Plan, statement: Statement, other: Statement, *, after: bool
) -> None:
    """Take ``statement`` out of its place and put it directly before or after ``other``."""
    source, destination = document.span(statement), document.span(other)
    if source[0] <= destination[0] and destination[1] <= source[1]:
        raise CannotFix("the statement holds the place where it would go")
    plan.statements.append(source)
    plan.points.append(destination[1 if after else 0])

    def insert(body: Body, rebuilt: Rebuilt) -> None:
        line = _detached(document, statement, rebuilt)
        if after:
            body.insert_after(other, [line])
        else:
            body.insert_before(other, [line])

    def take_out(body: Body, _: Rebuilt) -> None:
        body.remove(statement, with_comments=True)

    plan.changes.append(BodyChange(document.block_of(other), insert, (other,)))
    plan.changes.append(BodyChange(document.block_of(statement), take_out, (statement,)))


def wrap(document: Document, plan: Plan, statements: Sequence[Statement], header: str) -> None:
    """Indent neighbours below ``header``."""
    if not statements:
        raise CannotFix("no statements to wrap")
    block = document.block_of(statements[0])
    members = members_of(block)
    start = members.index(statements[0])
    if members[start : start + len(statements)] != list(statements):
        raise CannotFix("the statements are not neighbours in one block")
    compound = _compound_of(header)
    first, last = statements[0], statements[-1]
    plan.statements.append((document.span(first)[0], document.span(last)[1]))
    plan.changes.append(
        BodyChange(block, lambda body, _: body.wrap(first, last, compound), (first, last))
    )


def members_of(block: Block) -> list[Statement]:
    """The statements of a block in order, those of one line each by itself."""
    members: list[Statement] = []
    for line in block.body:
        if isinstance(line, cst.SimpleStatementLine):
            members += line.body
        elif isinstance(line, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            members.append(line)
    return members


def docstring_of(block: Block) -> Statement | None:
    """The first statement of a block if it is a plain string."""
    members = members_of(block)
    first = members[0] if members else None
    if isinstance(first, cst.Expr) and isinstance(
        first.value, (cst.SimpleString, cst.ConcatenatedString)
    ):
        return first
    return None


def _lines_of(code: str) -> list[Line]:
    return [with_empty_blank_lines(line) for line in parse_statements(code)]


def _putting(document: Document, place: Statement, moved: Statement) -> BodyEdit:
    def edit(body: Body, rebuilt: Rebuilt) -> None:
        body.put(place, _detached(document, moved, rebuilt))

    return edit


def _detached(document: Document, statement: Statement, rebuilt: Rebuilt) -> Line:
    """A statement as a line of its own, with the comments that belong to it."""
    return with_empty_blank_lines(_as_line(document, statement, rebuilt))


def _as_line(document: Document, statement: Statement, rebuilt: Rebuilt) -> Line:
    new = rebuilt(statement)
    if isinstance(statement, cst.BaseCompoundStatement):
        _, comments = split_at_last_blank(cast("Line", statement).leading_lines)
        return cast("Line", new.with_changes(leading_lines=comments))
    line = document.parent(statement)
    assert isinstance(line, (cst.SimpleStatementLine, cst.SimpleStatementSuite))
    small = new.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
    detached = cst.SimpleStatementLine([cast("cst.BaseSmallStatement", small)])
    if line.body[-1] is statement:
        detached = detached.with_changes(trailing_whitespace=line.trailing_whitespace)
    if isinstance(line, cst.SimpleStatementLine) and line.body[0] is statement:
        detached = detached.with_changes(leading_lines=split_at_last_blank(line.leading_lines)[1])
    return detached


def _single_small_statement(lines: Sequence[Line]) -> cst.BaseSmallStatement | None:
    if len(lines) != 1 or not isinstance(lines[0], cst.SimpleStatementLine):
        return None
    line = lines[0]
    if len(line.body) != 1 or line.leading_lines or line.trailing_whitespace.comment:
        return None
    return line.body[0]


def _compound_of(header: str) -> cst.BaseCompoundStatement:
    lines = parse_statements(f"{header} pass")
    if len(lines) != 1 or not isinstance(lines[0], cst.BaseCompoundStatement):
        raise CannotFix(f"not the first line of a compound statement: {header}")
    return lines[0]


def _refuse_overlap(first: Span, second: Span) -> None:
    if first[0] < second[1] and second[0] < first[1]:
        raise CannotFix("one statement holds the other")
