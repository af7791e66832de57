"""The cheap necessary condition of a rule: looks at words and bytes, and may only say "not here".

A rule declares it beside its check::

    scout = identifier("backward") & (identifier("step") | text("optim."))

A scout that is true promises nothing; a scout that is false promises that the rule cannot fire in
this file. ``trainlint check --no-scout`` (hidden) runs without scouts, and a test holds both
outputs equal.

From cheap to dear: ``identifier``, ``part_of_identifier``, ``text``, ``pattern``. Write the cheap
conditions first: the others are asked only where these hold.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from functools import cached_property

_IDENTIFIERS_ONLY = bytes(
    byte if byte >= 0x80 or chr(byte).isalnum() or byte == ord("_") else ord(" ")
    for byte in range(256)
)
"""Turns every byte that cannot be part of an identifier into a space."""

_FLAT = rb"[^()#]*"
_NESTED = _FLAT + rb"(?:\(" + _FLAT + rb"\)" + _FLAT + rb")*"
FURTHER_ARGUMENTS = _FLAT + rb"(?:\(" + _NESTED + rb"\)" + _FLAT + rb")*"
"""For patterns: the rest of an argument list, up to its ``)``, with up to two levels inside.

It may go on over lines, and ends before a comment.
"""
ARGUMENTS = rb"\(" + FURTHER_ARGUMENTS + rb"\)"
"""For patterns: a whole argument list of such a kind."""


_LINE_STRING = (
    rb'"(?!"")[^"\\\n]*(?:\\[\s\S][^"\\\n]*)*"'
    rb"|'(?!'')[^'\\\n]*(?:\\[\s\S][^'\\\n]*)*'"
)
_LONG_STRING = (
    rb'"""[^"\\]*(?:(?:\\[\s\S]|"(?!""))[^"\\]*)*"""'
    rb"|'''[^'\\]*(?:(?:\\[\s\S]|'(?!''))[^'\\]*)*'''"
)
_STRING_OR_COMMENT = re.compile(rb"(" + _LINE_STRING + rb")|" + _LONG_STRING + rb"|#[^\n]*")


class Glance:
    """What scouts see of a file: its bytes, and each identifier in them once.

    ``whole`` is the file with its comments, where ``source`` has none.
    """

    def __init__(self, source: bytes, whole: bytes | None = None) -> None:
        # Patterns that want the start of a line can then all begin with a newline.
        self.source = b"\n" + source
        self.whole = source if whole is None else whole
        self.answers: dict[Scout, bool] = {}
        """What expensive scouts have said: rules share them."""

    def without_comments(self) -> Glance:
        """A closer look, at the code alone: without comments and strings of several lines."""
        code = _STRING_OR_COMMENT.sub(lambda match: match[1] or b"", self.whole)
        return Glance(code, self.whole)

    @cached_property
    def identifiers(self) -> frozenset[bytes]:
        """All identifiers, keywords and numbers, those in strings too."""
        return frozenset(self.source.translate(_IDENTIFIERS_ONLY).split())

    @cached_property
    def identifier_list(self) -> bytes:
        """The identifiers, one on a line: less to search than the file."""
        return b"\n".join(self.identifiers)

    def identifier_around(self, match: re.Match[bytes]) -> bytes:
        """The whole identifier of which a match is a part."""
        listed = self.identifier_list
        start, end = listed.rfind(b"\n", 0, match.start()) + 1, listed.find(b"\n", match.end())
        return listed[start:] if end < 0 else listed[start:end]

    @cached_property
    def small_letters(self) -> bytes:
        """The list of identifiers without capitals."""
        return self.identifier_list.lower()


class Scout(ABC):
    """A condition on a file; combine with ``&`` and ``|``."""

    @abstractmethod
    def suspects(self, glance: Glance) -> bool:
        """Whether the rule could possibly fire in this file."""

    def __and__(self, other: Scout) -> Scout:
        return _All((self, other))

    def __or__(self, other: Scout) -> Scout:
        return _Any((self, other))


class _All(Scout):
    def __init__(self, parts: tuple[Scout, ...]) -> None:
        self._parts = parts

    def suspects(self, glance: Glance) -> bool:
        return all(part.suspects(glance) for part in self._parts)


class _Any(Scout):
    def __init__(self, parts: tuple[Scout, ...]) -> None:
        self._parts = parts

    def suspects(self, glance: Glance) -> bool:
        return any(part.suspects(glance) for part in self._parts)


class _Identifier(Scout):
    def __init__(self, *alternatives: str) -> None:
        if not all(each.isidentifier() for each in alternatives):
            raise ValueError(f"not all of {alternatives} are identifiers: use text()")
        self._alternatives = frozenset(each.encode() for each in alternatives)

    def suspects(self, glance: Glance) -> bool:
        return not self._alternatives.isdisjoint(glance.identifiers)


class _PartOfIdentifier(Scout):
    def __init__(self, *parts: str) -> None:
        if not all(f"_{part}".isidentifier() for part in parts):
            raise ValueError(f"not all of {parts} can be in an identifier: use text()")
        self._parts = tuple(part.encode() for part in parts)

    def suspects(self, glance: Glance) -> bool:
        identifiers = glance.identifier_list
        return any(part in identifiers for part in self._parts)


class _PartInAnyCase(_PartOfIdentifier):
    def __init__(self, *parts: str) -> None:
        super().__init__(*(part.lower() for part in parts))

    def suspects(self, glance: Glance) -> bool:
        identifiers = glance.small_letters
        return any(part in identifiers for part in self._parts)


class _Regex(Scout):
    """Compiled when first asked: most are asked about few files, and in some runs about none."""

    def __init__(self, regex: bytes) -> None:
        self._regex = regex

    @cached_property
    def _compiled(self) -> re.Pattern[bytes]:
        return re.compile(self._regex, re.MULTILINE)

    def suspects(self, glance: Glance) -> bool:
        answer = glance.answers.get(self)
        if answer is None:
            answer = glance.answers[self] = self._finds(glance)
        return answer

    @abstractmethod
    def _finds(self, glance: Glance) -> bool:
        """Whether there is a match."""


class _IdentifierLike(_Regex):
    def _finds(self, glance: Glance) -> bool:
        return self._compiled.search(glance.identifier_list) is not None


class _Called(_Regex):
    def _finds(self, glance: Glance) -> bool:
        found = self._compiled.finditer(glance.identifier_list)
        return any(glance.identifier_around(match) + b"(" in glance.source for match in found)


class _Comment(_Regex):
    def _finds(self, glance: Glance) -> bool:
        return self._compiled.search(glance.whole) is not None


class _Pattern(_Regex):
    def _finds(self, glance: Glance) -> bool:
        return self._compiled.search(glance.source) is not None


class _Text(Scout):
    def __init__(self, *alternatives: str) -> None:
        self._alternatives = tuple(each.encode() for each in alternatives)

    def suspects(self, glance: Glance) -> bool:
        return any(each in glance.source for each in self._alternatives)


def identifier(*alternatives: str) -> Scout:
    """One of these identifiers (or keywords) occurs in the file, whole."""
    return _Identifier(*alternatives)


def part_of_identifier(*alternatives: str) -> Scout:
    """One of these is in an identifier of the file: ``clip_grad`` in ``clip_grad_norm_``."""
    return _PartOfIdentifier(*alternatives)


def part_in_any_case(*alternatives: str) -> Scout:
    """One of these is in an identifier of the file, in capitals or not."""
    return _PartInAnyCase(*alternatives)


def identifier_like(regex: bytes) -> Scout:
    """The regular expression matches in an identifier (``^`` and ``$`` match at its ends)."""
    return _IdentifierLike(regex)


def called(regex: bytes) -> Scout:
    """An identifier that the regular expression matches somewhere stands before a ``(``."""
    return _Called(regex)


def in_block(header: bytes, content: bytes) -> Scout:
    """A line begins with ``header``, and ``content`` is in it or in the block below it.

    ``in_block(rb"if\b", rb"\\.state_dict\\(")``: all branches of the ``if`` count as its block.
    """
    next_line = rb"(?=\1[ \t]|[ \t]*(?:#|\r?\n|\Z)|\1(?:[)\]}]|else\b|elif\b|except\b|finally\b))"
    start = rb"\n([ \t]*)(?:async[ \t]+)?(?:" + header + rb")"
    return _Pattern(start + rb"(?:[^\n]*\n" + next_line + rb")*?[^\n]*?(?:" + content + rb")")


def statement_like(regex: bytes) -> Scout:
    """A statement begins like this: on a line of its own, or after a ``:`` or ``;``."""
    header = rb"(?:(?:if|elif|else|for|while|with|try|except|finally|def|case)\b[^\n]*:[ \t]*)?"
    return pattern(rb"\n[ \t]*" + header + regex) | text(";") & pattern(rb";[ \t]*" + regex)


def text(*alternatives: str) -> Scout:
    """One of these pieces of text occurs somewhere in the file, exactly so."""
    return _Text(*alternatives)


def comment(regex: bytes) -> Scout:
    """The regular expression matches somewhere, in comments too: no other scout looks there."""
    return _Comment(regex)


def pattern(regex: bytes) -> Scout:
    """The regular expression matches somewhere (``^`` and ``$`` match at line ends)."""
    return _Pattern(regex)
