"""One file's text and syntax tree."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from bisect import bisect_right
from functools import cached_property
from pathlib import Path

from trainlint.scout import Glance

LARGEST_FILE = 300_000
"""Names, numbers and brackets of the largest file that is parsed.

A tree takes about 1 KB for each, so that no process needs more than 400 MB. Measured: 2 MB of
timm's source have 270,000; the largest files by hand that we met, of 1.3 MB, have 150,000.
"""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


class SourceError(Exception):
    """A file that cannot be decoded or parsed; the message is one line for the user."""


class SourceFile:
    """A file as text, with its ``ast`` tree on demand.

    ``cell_end_lines`` holds, for a notebook, the lines (counted from 1) on which a cell ends: the
    value of an expression statement there is displayed, not thrown away.
    """

    def __init__(self, path: Path, text: str, cell_end_lines: frozenset[int] = frozenset()) -> None:
        self.path = path
        self.text = text
        self.cell_end_lines = cell_end_lines

    @classmethod
    def from_bytes(cls, path: Path, data: bytes) -> SourceFile:
        """Decode as Python does: byte order mark, coding line, else UTF-8.

        Raises:
            SourceError: the bytes are not text in the encoding that the file declares.
        """
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            return cls(path, data.decode(encoding))
        except (SyntaxError, LookupError) as error:
            raise SourceError(f"cannot decode: {error}; fix the coding line") from error
        except UnicodeDecodeError as error:
            raise SourceError(
                f"cannot decode: not valid {error.encoding} at byte {error.start}; "
                "declare the encoding in the first line"
            ) from error

    @classmethod
    def from_text(
        cls, path: Path, text: str, cell_end_lines: frozenset[int] = frozenset()
    ) -> SourceFile:
        """A file that exists as text only: standard input, or the cells of a notebook."""
        return cls(path, text, cell_end_lines)

    @cached_property
    def glance(self) -> Glance:
        """What scouts see of it."""
        return Glance(self.text.encode("utf-8", "replace")).without_comments()

    @cached_property
    def lines(self) -> list[str]:
        """The lines as Python counts them, each with its line end."""
        return _LINE.findall(self.text)

    @cached_property
    def _statements(self) -> list[tuple[tuple[int, int], ast.stmt]]:
        """All statements with where they start, in order of that; outer ones first."""
        found: list[tuple[tuple[int, int], ast.stmt]] = []
        pending: list[ast.AST] = [self.tree]
        while pending:
            for child in ast.iter_child_nodes(pending.pop()):
                if isinstance(child, ast.expr):
                    continue
                if isinstance(child, ast.stmt):
                    first = first_line(child)
                    column = child.col_offset if first == child.lineno else 0
                    found.append(((first, column), child))
                pending.append(child)
        found.sort(key=lambda item: item[0])
        return found

    def statement_at(self, line: int, column: int) -> ast.stmt | None:
        """The innermost statement at a place (``ast``'s line and column), decorators included."""
        position = bisect_right(self._statements, (line, column), key=lambda item: item[0])
        for number in range(position - 1, -1, -1):
            statement = self._statements[number][1]
            end = (statement.end_lineno or statement.lineno, statement.end_col_offset or 0)
            if (line, column) <= end:
                return statement
        return None

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree.

        Raises:
            SourceError: this interpreter's grammar does not accept the text, or it is too large.
        """
        if len(self.text) > LARGEST_FILE and (size := _size(self.text)) > LARGEST_FILE:
            raise SourceError(
                f"too large to check: {size:,} names, numbers and brackets, the most is "
                f"{LARGEST_FILE:,}; list it in `exclude`, as one excludes generated files"
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(self.text.removeprefix("\ufeff"))
        except SyntaxError as error:
            where = f" at line {error.lineno}" if error.lineno else ""
            raise SourceError(f"cannot parse{where}: {error.msg}") from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise SourceError(f"cannot parse: {error or 'too deeply nested'}") from error


def _size(text: str) -> int:
    """How many names, numbers and brackets a text has: what its syntax tree costs."""
    return len(re.findall(r"\w+", text)) + sum(map(text.count, "([{"))


def first_line(statement: ast.stmt) -> int:
    """The line on which a statement starts; a definition starts at its first decorator."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])
