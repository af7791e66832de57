"""A notebook as one Python text, with the way back to its cells."""

from __future__ import annotations

import ast
import bisect
import dataclasses
import re
import warnings
from itertools import accumulate
from pathlib import Path

from trainlint.analysis.source import SourceError
from trainlint.finding import Finding
from trainlint.notebook.document import Document, DocumentError
from trainlint.notebook.magics import Magics, cell_magic, runs_elsewhere

_OWN_LINE = re.compile(r"\bline (\d+)\b(?! of \S+\.)")


class Notebook:
    """The code cells of a ``.ipynb`` file.

    ``text`` holds all code cells in order, magics replaced by plain Python, and after each cell a
    line that marks its end; check it with
    ``SourceFile.from_text(path, notebook.text, notebook.cell_end_lines)``. It is empty for a
    notebook of another language. ``cell_end_lines`` are the lines of ``text`` on which a cell's
    last statement ends, where that statement's value is displayed. ``cell_sources`` are the cells
    as they stand in the file.
    """

    def __init__(self, path: Path, document: Document, byte_order_mark: str) -> None:
        self._path = path
        self._document = document
        self._byte_order_mark = byte_order_mark
        self._tag = _unused_tag(document.cell_sources)
        self._magics = Magics(f"{self._tag}-line")
        self._end_mark = f"pass  # {self._tag}-cell-end"
        self._cells = [self._magics.mask(_lines(source)) for source in self.cell_sources]
        self._starts = list(accumulate((len(cell) + 1 for cell in self._cells), initial=1))
        self.text = "".join(f"{line}\n" for cell in self._cells for line in [*cell, self._end_mark])
        self.cell_end_lines = frozenset(self._displayed_lines())

    @classmethod
    def from_bytes(cls, path: Path, data: bytes) -> Notebook:
        """Read a notebook of format 3 or 4.

        Raises:
            SourceError: the file is not UTF-8, not JSON, or not a notebook.
        """
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise SourceError(
                f"cannot decode: not valid utf-8 at byte {error.start}; save the notebook again"
            ) from error
        bare = text.removeprefix("\ufeff")
        try:
            return cls(path, Document(bare), text[: len(text) - len(bare)])
        except DocumentError as error:
            raise SourceError(f"not a valid notebook: {error}") from error

    @property
    def cell_sources(self) -> list[str]:
        """The source of each code cell, magics and all."""
        return self._document.cell_sources

    def locate(self, line: int) -> tuple[int, int]:
        """The cell, and the line in it, both from 1, of a line of ``text``."""
        if not self._cells:
            return 1, line
        cell = min(max(bisect.bisect_right(self._starts, line), 1), len(self._cells))
        return cell, min(line - self._starts[cell - 1] + 1, max(len(self._cells[cell - 1]), 1))

    def place(self, finding: Finding) -> Finding:
        """The finding with its cell, its lines and those that it speaks of counted within cells."""
        cell, line = self.locate(finding.line)

        def within(other: int) -> int:
            other_cell, other_line = self.locate(other)
            return other_line if other_cell == cell else line

        return dataclasses.replace(
            finding,
            cell=cell,
            line=line,
            end_line=within(finding.end_line),
            statement_line=within(finding.statement_line),
            statement_end_line=within(finding.statement_end_line),
            message=_OWN_LINE.sub(lambda other: self._spoken(int(other[1]), cell), finding.message),
        )

    def _spoken(self, line: int, here: int) -> str:
        """How a message in cell ``here`` names a line of ``text``."""
        cell, local = self.locate(line)
        return f"line {local}" if cell == here else f"line {local} of cell {cell}"

    def syntax_error(self) -> str | None:
        """What is wrong with the first cell that does not parse, if there is one."""
        for number, cell in enumerate(self._cells, start=1):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ast.parse("\n".join(cell))
            except SyntaxError as error:
                return f"cannot parse cell {number}, line {error.lineno or 1}: {error.msg}"
            except (ValueError, RecursionError, MemoryError) as error:
                return f"cannot parse cell {number}: {error or 'too deeply nested'}"
        return None

    def cell_sources_of(self, text: str) -> list[str]:
        """The cells' sources after ``text`` was changed, magics back in place.

        Raises:
            SourceError: the change removed or doubled a magic or the end of a cell.
        """
        if not self._cells:
            return []
        try:
            cells = self._split(self._magics.unmask(_lines(text)))
        except ValueError as error:
            raise SourceError(f"cannot write the notebook: {error}") from error
        return [
            self._with_line_ends(cell, old)
            for cell, old in zip(cells, self.cell_sources, strict=True)
        ]

    def _split(self, lines: list[str]) -> list[list[str]]:
        cells: list[list[str]] = [[]]
        for line in lines:
            if line.strip() == self._end_mark:
                cells.append([])
            else:
                cells[-1].append(line)
        rest = cells.pop()
        if len(cells) != len(self._cells) or any(line.strip() for line in rest):
            raise ValueError("a change touches the end of a cell")
        for cell, source in zip(cells, self.cell_sources, strict=True):
            old = _lines(source)
            moved = cell_magic(cell) != cell_magic(old)
            if moved or (runs_elsewhere(old) and cell != old):
                raise ValueError("a change touches a cell magic")
        return cells

    def _with_line_ends(self, lines: list[str], old: str) -> str:
        if lines == _lines(old):
            return old
        source = "\n".join(lines)
        return source.replace("\n", "\r\n") if "\r\n" in old else source

    def with_text(self, text: str) -> bytes:
        """The whole file after ``text`` was changed, by a fix or by added comments.

        Only the sources of changed cells differ from the file that was read.

        Raises:
            SourceError: the change removed or doubled a magic or the end of a cell.
        """
        sources = self.cell_sources_of(text)
        changed = self._document.with_cell_sources(sources) if sources else self._document.text
        return (self._byte_order_mark + changed).encode("utf-8")

    def _displayed_lines(self) -> list[int]:
        displayed = []
        for start, cell in zip(self._starts, self._cells, strict=False):
            code = [
                (number, line.rstrip())
                for number, line in enumerate(cell, start=start)
                if line.strip() and not line.lstrip().startswith("#")
            ]
            if code and not code[-1][1].endswith(";") and not self._magics.is_masked(code[-1][1]):
                displayed.append(code[-1][0])
        return displayed


def _lines(source: str) -> list[str]:
    """The lines as Python counts them, without line ends; text after the last line end too."""
    return re.split(r"\r\n|\r|\n", source)


def _unused_tag(sources: list[str]) -> str:
    tag = "ipynb"
    while any(tag in source for source in sources):
        tag += "_"
    return tag
