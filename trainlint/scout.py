"""The cheap necessary condition of a rule: looks at bytes only, and may only say "not here".

A rule declares it beside its check::

    scout = word("backward") & (word("step") | pattern(rb"optim"))

A scout that is true promises nothing; a scout that is false promises that the rule cannot fire in
this file. ``trainlint check --no-scout`` (hidden) runs without scouts, and a test holds both
outputs equal.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence


class Scout(ABC):
    """A condition on the bytes of a file; combine with ``&`` and ``|``."""

    @abstractmethod
    def suspects(self, source: bytes) -> bool:
        """Whether the rule could possibly fire in a file with these bytes."""

    def __and__(self, other: Scout) -> Scout:
        return _All((self, other))

    def __or__(self, other: Scout) -> Scout:
        return _Any((self, other))


class _Words(Scout):
    def __init__(self, words: Sequence[str]) -> None:
        self._words = tuple(word.encode() for word in words)

    def suspects(self, source: bytes) -> bool:
        return any(word in source for word in self._words)


class _AnyCase(Scout):
    """Compares small letters; the small letters of the last file are kept for the next scout."""

    _last: tuple[bytes, bytes] = (b"", b"")

    def __init__(self, words: Sequence[str]) -> None:
        self._words = tuple(word.lower().encode() for word in words)

    def suspects(self, source: bytes) -> bool:
        if source is not _AnyCase._last[0]:
            _AnyCase._last = (source, source.lower())
        small = _AnyCase._last[1]
        return any(word in small for word in self._words)


class _Pattern(Scout):
    """Remembers its last answer: rules share patterns, and ask about one file after the other."""

    def __init__(self, regex: bytes) -> None:
        self._search = re.compile(regex, re.MULTILINE).search
        self._last: tuple[bytes, bool] = (b"", self._search(b"") is not None)

    def suspects(self, source: bytes) -> bool:
        if source is not self._last[0]:
            self._last = (source, self._search(source) is not None)
        return self._last[1]


class _All(Scout):
    def __init__(self, parts: tuple[Scout, ...]) -> None:
        self._parts = parts

    def suspects(self, source: bytes) -> bool:
        return all(part.suspects(source) for part in self._parts)


class _Any(Scout):
    def __init__(self, parts: tuple[Scout, ...]) -> None:
        self._parts = parts

    def suspects(self, source: bytes) -> bool:
        return any(part.suspects(source) for part in self._parts)


def word(*alternatives: str) -> Scout:
    """One of these pieces of text occurs somewhere in the file."""
    return _Words(alternatives)


def word_in_any_case(*alternatives: str) -> Scout:
    """One of these pieces of text occurs somewhere in the file, in capitals or not."""
    return _AnyCase(alternatives)


def pattern(regex: bytes) -> Scout:
    """The regular expression matches somewhere (``^`` and ``$`` match at line ends)."""
    return _Pattern(regex)
