"""One file's text and syntax tree."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from functools import cached_property
from pathlib import Path

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


class SourceError(Exception):
    """A file that cannot be decoded or parsed; the message is one line for the user."""


class SourceFile:
    """A file as text, with its ``ast`` tree on demand.

    ``cell_end_lines`` holds, for a notebook, the lines (counted from 1) on which a cell ends: the
    value of an expression statement there is displayed, not thrown away.
    """

    def __init__(
        self, path: Path, text: str, cell_end_lines: frozenset[int] = frozenset()
    ) -> None:
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
    def lines(self) -> list[str]:
        """The lines as Python counts them, each with its line end."""
        return _LINE.findall(self.text)

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree.

        Raises:
            SourceError: this interpreter's grammar does not accept the text.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(self.text.removeprefix("\ufeff"))
        except SyntaxError as error:
            where = f" at line {error.lineno}" if error.lineno else ""
            raise SourceError(f"cannot parse{where}: {error.msg}") from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise SourceError(f"cannot parse: {error or 'too deeply nested'}") from error
