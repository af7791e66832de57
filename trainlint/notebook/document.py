"""The JSON of a notebook file: where each code cell's source stands, and how to replace it.

Everything but a replaced source stays as it is, byte for byte, because the file's text is cut at
the source's place instead of being decoded and written anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_NON_ASCII_ESCAPE = re.compile(r"\\u(?!00[0-7])")


class DocumentError(Exception):
    """A text that is not a notebook; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A decoded JSON value and its place in the text (``end`` exclusive)."""

    value: object
    start: int
    end: int


class Document:
    """A notebook's text, cut at the sources of its code cells."""

    def __init__(self, text: str) -> None:
        """Find the Python cells.

        Raises:
            DocumentError: the text is not JSON, or not a notebook.
        """
        self.text = text
        self._sources = [_source(text, cell) for cell in _python_cells(text)]
        self.cell_sources = [_joined(source.value) for source in self._sources]

    def with_cell_sources(self, sources: list[str]) -> str:
        """The notebook's text with these sources; equal ones stay untouched."""
        pieces = []
        position = 0
        for place, old, new in zip(self._sources, self.cell_sources, sources, strict=True):
            if new != old:
                pieces += [self.text[position : place.start], self._encoded(place, new)]
                position = place.end
        return "".join([*pieces, self.text[position:]])

    def _encoded(self, place: _Value, source: str) -> str:
        """The source as JSON, in the form of the one that it replaces."""
        if isinstance(place.value, str):
            return self._literal(source)
        elements = list(_elements(self.text, place.start))
        known = {element.value: self.text[element.start : element.end] for element in elements}
        literals = [known.get(line) or self._literal(line) for line in _lines(source)]
        if not literals:
            return "[]"
        if not elements:
            return f"[{', '.join(literals)}]"
        opening = self.text[place.start + 1 : elements[0].start]
        closing = self.text[elements[-1].end : place.end - 1]
        separator = "," + (opening or " ")
        if len(elements) > 1:
            separator = self.text[elements[0].end : elements[1].start]
        return f"[{opening}{separator.join(literals)}{closing}]"

    def _literal(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=self._escapes_non_ascii)

    @cached_property
    def _escapes_non_ascii(self) -> bool:
        return self.text.isascii() and _NON_ASCII_ESCAPE.search(self.text) is not None


def _python_cells(text: str) -> Iterator[_Value]:
    if not text.strip():
        return
    try:
        notebook = json.loads(text)
    except ValueError as error:
        raise DocumentError(str(error)) from error
    except RecursionError:
        raise DocumentError("it is nested too deeply") from None
    if not isinstance(notebook, dict):
        raise DocumentError("it holds no notebook")
    if not _is_python(notebook.get("metadata")):
        return
    top = _members(text, _after_space(text, 0))
    for cells in _cell_lists(text, top):
        if not isinstance(cells.value, list):
            raise DocumentError("`cells` is not a list")
        for cell in _elements(text, cells.start):
            if not isinstance(cell.value, dict):
                raise DocumentError("a cell is not an object")
            if cell.value.get("cell_type") == "code" and _is_python_cell(cell.value):
                yield cell


def _cell_lists(text: str, top: Mapping[str, _Value]) -> Iterator[_Value]:
    """The list of cells, or since format 3 has it so, the list of each worksheet."""
    if "cells" in top:
        yield top["cells"]
    elif "worksheets" in top and isinstance(top["worksheets"].value, list):
        for worksheet in _elements(text, top["worksheets"].start):
            if isinstance(worksheet.value, dict) and "cells" in worksheet.value:
                yield _members(text, worksheet.start)["cells"]
    else:
        raise DocumentError("it has no `cells`")


def _source(text: str, cell: _Value) -> _Value:
    members = _members(text, cell.start)
    source = members.get("source") or members.get("input")
    value = source.value if source else None
    valid = isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(line, str) for line in value)
    )
    if source is None or not valid:
        raise DocumentError("a code cell has no source")
    return source


def _is_python(metadata: object) -> bool:
    """Whether the kernel runs Python; a notebook that does not say is taken to.

    Where only the kernel's own name is known, that is ``python3``, ``conda-env-NAME-py``, ...
    """
    if not isinstance(metadata, dict):
        return True
    language, kernel = metadata.get("language_info"), metadata.get("kernelspec")
    named = [language.get("name")] if isinstance(language, dict) else []
    if isinstance(kernel, dict):
        named += [kernel.get("language"), kernel.get("name")]
    first = next((name for name in named if isinstance(name, str) and name), "python")
    return "py" in first.lower()


def _is_python_cell(cell: Mapping[str, object]) -> bool:
    """Whether an editor that mixes languages in one notebook marked the cell as Python."""
    metadata = cell.get("metadata")
    editor = metadata.get("vscode") if isinstance(metadata, dict) else None
    language = editor.get("languageId") if isinstance(editor, dict) else None
    return language in (None, "python")


def _members(text: str, start: int) -> dict[str, _Value]:
    """The members of the valid JSON object at ``start``; of equal keys the last counts."""
    members = {}
    index = _after_space(text, start + 1)
    while text[index] != "}":
        key, index = _DECODER.raw_decode(text, index)
        colon = _after_space(text, index)
        value = _value(text, _after_space(text, colon + 1))
        members[key] = value
        index = _after_separator(text, value.end)
    return members


def _elements(text: str, start: int) -> Iterator[_Value]:
    """The elements of the valid JSON array at ``start``."""
    index = _after_space(text, start + 1)
    while text[index] != "]":
        element = _value(text, index)
        yield element
        index = _after_separator(text, element.end)


def _value(text: str, start: int) -> _Value:
    value, end = _DECODER.raw_decode(text, start)
    return _Value(value, start, end)


def _after_separator(text: str, index: int) -> int:
    index = _after_space(text, index)
    return _after_space(text, index + 1) if text[index] == "," else index


def _after_space(text: str, index: int) -> int:
    match = _SPACE.match(text, index)
    return match.end() if match else index


def _joined(value: object) -> str:
    return "".join(value) if isinstance(value, list) else str(value)


def _lines(source: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", source)
