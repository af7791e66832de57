"""Searches through the text of all files of a project."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainlint.discovery import FileStat, python_files_below

_BETWEEN = bytes(byte for byte in range(0x80) if not (chr(byte).isalnum() or chr(byte) == "_"))
"""The bytes that cannot be part of an identifier."""

_IMPORT = re.compile(rb"^[ \t]*(?:from|import)\b(?:[^\n(#]*\([^)]*\)|[^\n#]*)", re.MULTILINE)
_IDENTIFIER = re.compile(rb"[^\W\d]\w*")
_MAX_FILES = 5_000
_MAX_BYTES = 500_000


@dataclass(frozen=True, slots=True)
class Search:
    """Asks which files hold ``text``, and one of some others if given.

    A text that is an identifier counts only whole: ``step`` is not found in ``step_size``.
    """

    text: str
    one_of: tuple[str, ...] = ()

    def finds(self, data: bytes) -> bool:
        """Whether a file with this content is one of them."""
        if not _holds(data, self.text):
            return False
        return not self.one_of or any(_holds(data, other) for other in self.one_of)


def searched_files(root: str) -> dict[str, FileStat]:
    """The files of the project at ``root`` that are searched, in the order of their paths.

    Those of more than 500 kB hold data; a folder of more than 5,000 is no project, and not searched
    at all.
    """
    found = dict(sorted(python_files_below(root)))
    if len(found) > _MAX_FILES:
        return {}
    return {path: status for path, status in found.items() if status.size <= _MAX_BYTES}


def _holds(data: bytes, text: str) -> bool:
    needle = text.encode()
    return holds_identifier(data, needle) if text.isidentifier() else needle in data


def heirs_in(data: bytes, name: str) -> list[str]:
    """The classes defined in a file that list a class of this name among their bases."""
    bases = rb"class[ \t]+(\w+)[ \t]*\([^)]*\b" + name.encode() + rb"\b"
    return [heir.decode() for heir in re.findall(bases, data)]


def imported_words(data: bytes) -> set[bytes]:
    """Every identifier of a file's import statements: modules, packages and what is taken."""
    return {word for line in _IMPORT.findall(data) for word in _IDENTIFIER.findall(line)}


def holds_identifier(data: bytes, identifier: bytes) -> bool:
    """Whether the identifier occurs whole, and not only as a part of another one."""
    end = 0
    while (start := data.find(identifier, end)) >= 0:
        end = start + len(identifier)
        if not (data[start - 1 : start] + data[end : end + 1]).translate(None, _BETWEEN):
            return True
    return False
