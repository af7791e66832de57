"""One file under repair: its text, its LibCST tree, and the way from ``ast`` nodes to both."""

from __future__ import annotations

import ast
import re

import libcst as cst

from trainlint.fixing.correspondence import Correspondence
from trainlint.fixing.errors import CannotFix
from trainlint.fixing.parsing import parse_ast, parse_concrete
from trainlint.fixing.places import Places, Range
from trainlint.fixing.white_space import split_at_last_blank

Line = cst.SimpleStatementLine | cst.BaseCompoundStatement
Block = cst.Module | cst.IndentedBlock | cst.SimpleStatementSuite
Statement = cst.BaseSmallStatement | cst.BaseCompoundStatement
Span = tuple[int, int]

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")


class Document:
    """Everything that edits need to know of the file as it was checked.

    A span is a start and an end offset into the text, in characters, the end exclusive.
    """

    def __init__(self, text: str) -> None:
        """Parse ``text``.

        Raises:
            CannotFix: it cannot be parsed, or not edited safely.
        """
        self.text = text
        self.tree = parse_ast(text)
        self.module = _with_comments_at_first_statement(parse_concrete(text))
        self._places = Places(self.module)
        self._correspondence = Correspondence(self._places)
        self._lines = _LINE.findall(text)
        self._line_starts = [0]
        for line in self._lines:
            self._line_starts.append(self._line_starts[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        """The offset of a place: line from 1, column from 0 in characters.

        Raises:
            CannotFix: the text has no such place.
        """
        if not 1 <= line <= len(self._lines) or not 0 <= column <= len(self._lines[line - 1]):
            raise CannotFix(f"the file has no line {line}, column {column}")
        return self._line_starts[line - 1] + column

    def source(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        """The text of an ``ast`` node."""
        line, column, end_line, end_column = self._range(node)
        return self.text[self.offset(line, column) : self.offset(end_line, end_column)]

    def expression(self, node: ast.expr) -> cst.BaseExpression:
        """The LibCST node of an ``ast`` expression.

        Raises:
            CannotFix: there is none; some places inside f-strings are unknown before Python 3.12.
        """
        found = self._correspondence.expression(node, self._range(node))
        if not isinstance(found, cst.BaseExpression) or not self._means(found, node):
            raise CannotFix(f"no editable expression at line {node.lineno}")
        return found

    def statement(self, node: ast.stmt) -> Statement:
        """The LibCST node of an ``ast`` statement.

        Raises:
            CannotFix: there is none.
        """
        found = self._correspondence.statement(node, self._range(node)[:2])
        if not isinstance(found, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            raise CannotFix(f"no editable statement at line {node.lineno}")
        return found

    def load_first_statement(self) -> None:
        """Make the first statement of the module known to ``span`` and ``parent``."""
        for node in self.tree.body[:1]:
            self.statement(node)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that holds ``node``; none for the module."""
        return self._places.parent(node)

    def block_of(self, statement: Statement) -> Block:
        """The block that ``statement`` is a member of.

        Raises:
            CannotFix: it is none, as an ``elif`` is not.
        """
        parent = self.parent(statement)
        if isinstance(parent, cst.SimpleStatementLine):
            parent = self.parent(parent)
        if not isinstance(parent, (cst.Module, cst.IndentedBlock, cst.SimpleStatementSuite)):
            raise CannotFix("this statement is not a member of a block")
        return parent

    def span(self, node: cst.CSTNode) -> Span:
        """Where ``node`` stands, with the parentheses around it."""
        line, column, end_line, end_column = self._places.range(node)
        if isinstance(node, cst.BaseExpression) and node.lpar:
            line, column, *_ = self._places.range(node.lpar[0])
            *_, end_line, end_column = self._places.range(node.rpar[-1])
        return self.offset(line, column), self.offset(end_line, end_column)

    def _range(self, node: ast.expr | ast.stmt | ast.keyword) -> Range:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return (
            node.lineno,
            self._characters(node.lineno, node.col_offset),
            end_line,
            self._characters(end_line, end_column),
        )

    def _characters(self, line: int, column_in_bytes: int) -> int:
        if not 1 <= line <= len(self._lines):
            raise CannotFix(f"the file has no line {line}")
        text = self._lines[line - 1]
        if text.isascii():
            return column_in_bytes
        return len(text.encode()[:column_in_bytes].decode(errors="ignore"))

    def _means(self, found: cst.BaseExpression, node: ast.expr) -> bool:
        """Whether the text found is the node's: before 3.12, places in f-strings can be wrong."""
        start, end = self.span(found)
        try:
            read = ast.parse(f"({self.text[start:end]}\n)", mode="eval").body
        except SyntaxError:
            return False
        return _without_context(read) == _without_context(node)


def _with_comments_at_first_statement(module: cst.Module) -> cst.Module:
    """LibCST gives all that stands above the first statement to the module."""
    header, comments = split_at_last_blank(module.header)
    if not header or not module.body:
        return module
    first = module.body[0]
    leading = [*comments, *first.leading_lines]
    body = [first.with_changes(leading_lines=leading), *module.body[1:]]
    return module.with_changes(header=header, body=body)


def _without_context(node: ast.expr) -> str:
    return re.sub(r"ctx=(?:Load|Store|Del)\(\)", "ctx=Load()", ast.dump(node))
