"""A checked file as one Python text, whether it is a script or a notebook."""

from __future__ import annotations

import difflib
import io
import tokenize
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from trainlint.analysis import SourceFile
from trainlint.finding import Finding
from trainlint.notebook import Notebook


class Document(ABC):
    """``source`` is what the rules read, and ``data`` the bytes of the file that it came from."""

    source: SourceFile
    data: bytes

    @staticmethod
    def from_bytes(path: Path, data: bytes) -> Document:
        """Read a notebook, or else Python source.

        Raises:
            SourceError: the bytes cannot be decoded, or are not a notebook.
        """
        return _NotebookFile(path, data) if path.suffix == ".ipynb" else _PythonFile(path, data)

    @property
    def text(self) -> str:
        """The Python text."""
        return self.source.text

    def place(self, finding: Finding) -> Finding:
        """The finding, found in ``text``, at the place where users look for it."""
        return finding

    def describe_error(self, message: str) -> str:
        """Why ``text`` cannot be parsed, with the line where users look for it."""
        return message

    @abstractmethod
    def edited(self, text: str) -> Document:
        """The document with another text; everything else of the file stays as it is.

        Raises:
            UnicodeEncodeError: the encoding of the file has no bytes for the new text.
        """

    @abstractmethod
    def parts(self) -> Iterator[tuple[str, str]]:
        """The pieces that a difference is shown in, each with what to add to the path."""


class _PythonFile(Document):
    def __init__(self, path: Path, data: bytes) -> None:
        self.data = data
        self.source = SourceFile.from_bytes(path, data)

    def edited(self, text: str) -> Document:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(self.data).readline)
        return _PythonFile(self.source.path, text.encode(encoding))

    def parts(self) -> Iterator[tuple[str, str]]:
        yield "", self.text


class _NotebookFile(Document):
    def __init__(self, path: Path, data: bytes) -> None:
        self.data = data
        self._notebook = Notebook.from_bytes(path, data)
        self.source = SourceFile.from_text(path, self._notebook.text, self._notebook.cell_end_lines)

    def place(self, finding: Finding) -> Finding:
        return self._notebook.place(finding)

    def describe_error(self, message: str) -> str:
        return self._notebook.syntax_error() or message

    def edited(self, text: str) -> Document:
        return _NotebookFile(self.source.path, self._notebook.with_text(text))

    def parts(self) -> Iterator[tuple[str, str]]:
        for number, cell in enumerate(self._notebook.cell_sources, start=1):
            yield f":cell {number}", cell


def unified_diff(shown_path: str, before: Document, after: Document) -> str:
    """The difference between two states of a document, in the format that ``patch`` reads."""
    lines: list[str] = []
    for (label, old), (_, new) in zip(before.parts(), after.parts(), strict=True):
        name = shown_path + label
        lines += difflib.unified_diff(
            old.splitlines(keepends=True), new.splitlines(keepends=True), name, name
        )
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_LINE_END}" for line in lines)


_NO_LINE_END = "\\ No newline at end of file\n"
