"""The lines around a finding, with the place underlined."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from trainlint.finding import Finding
from trainlint.output import colours

_LINES_BEFORE = 2
_LINES_AFTER = 2
_WIDEST_LINE = 140
_TAB = "    "


@dataclass(frozen=True, slots=True)
class _Window:
    """The part of the lines, in characters, that is shown: whole lines unless they are long."""

    start: int
    end: int

    def shown(self, line: str) -> str:
        """That part of a line, with an ellipsis where it is cut."""
        before = "…" if self.start and line else ""
        after = "…" if len(line) > self.end else ""
        return before + line[self.start : self.end] + after


def code_frame(finding: Finding, lines: Sequence[str], colour: bool) -> list[str]:
    """The frame's lines; none when the finding's line is not there.

    Tabs are shown as four columns, characters that would disturb a terminal as ``�``, and of a
    very long line only the part around the finding.
    """
    if not 1 <= finding.line <= len(lines):
        return []
    first = max(1, finding.line - _LINES_BEFORE)
    last = min(len(lines), finding.line + _LINES_AFTER)
    while first < finding.line and not lines[first - 1].strip():
        first += 1
    while last > finding.line and not lines[last - 1].strip():
        last -= 1
    margin = len(str(last))
    window = _window(finding, lines[finding.line - 1])
    edge = colours.painted(f"{'':{margin}} |", colours.BLUE, colour)
    frame = [edge]
    for number in range(first, last + 1):
        gutter = colours.painted(f"{number:>{margin}} |", colours.BLUE, colour)
        frame.append(f"{gutter} {_displayed(window.shown(lines[number - 1]))}".rstrip())
        if number == finding.line:
            mark = _underline(finding, lines[number - 1], window)
            frame.append(
                f"{edge} {colours.painted(mark, colours.of_severity(finding.severity), colour)}"
            )
    frame.append(edge)
    return frame


def _window(finding: Finding, line: str) -> _Window:
    if len(line) <= _WIDEST_LINE:
        return _Window(0, _WIDEST_LINE)
    start = max(0, finding.column - 1 - _WIDEST_LINE // 3)
    return _Window(start, start + _WIDEST_LINE)


def _underline(finding: Finding, line: str, window: _Window) -> str:
    """Carets below the finding's part of its first line."""
    end = finding.end_column - 1 if finding.end_line == finding.line else len(line.rstrip())
    start = finding.column - 1
    shown_end = min(max(end, start + 1), window.end)
    before = window.shown(line[:start]) if start > window.start else ""
    marked = line[start:shown_end]
    return " " * _width(_displayed(before)) + "^" * max(1, _width(_displayed(marked)))


def _displayed(text: str) -> str:
    """The text as a terminal can show it."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_displayed_character, text))


def _displayed_character(character: str) -> str:
    if character == "\t":
        return _TAB
    return character if character.isprintable() else "�"


def _width(text: str) -> int:
    """How many terminal columns the text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
