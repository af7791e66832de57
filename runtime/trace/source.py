"""Where in somebody's source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """One line of somebody's source."""

    file: str
    line: int
    text: str = ""
    function: str = ""
