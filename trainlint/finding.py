"""What a check says about one place in one file: plain data, safe to pickle, cache and print."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Severity(enum.Enum):
    """How bad a finding is.

    ``error``: the training result is wrong. ``warning``: it is likely worse, or the code breaks
    later. ``info``: speed, memory, or the style of a recipe.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for ``info``, 1 for ``warning``, 2 for ``error``."""
        return _RANKS[self]

    def at_least(self, other: Severity) -> bool:
        """Whether this severity is as serious as ``other``, or more."""
        return self.rank >= other.rank


_RANKS = {Severity.INFO: 0, Severity.WARNING: 1, Severity.ERROR: 2}


class Applicability(enum.Enum):
    """``safe``: keeps the meaning or repairs a certain mistake. ``unsafe``: needs a look."""

    SAFE = "safe"
    UNSAFE = "unsafe"


@dataclass(frozen=True, slots=True)
class Fix:
    """That a fix exists, and what it would do (``title``, an imperative phrase)."""

    applicability: Applicability
    title: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One reported place.

    Lines and columns count from 1, columns in characters; the end is exclusive.
    ``statement_line`` to ``statement_end_line`` (inclusive) is the simple statement, or the header
    of the compound statement, that holds the place: a suppression comment on any of these lines
    counts. In a notebook, ``cell`` counts the code cells from 1 and lines count within the cell.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    code: str
    rule: str
    severity: Severity
    message: str
    help: str
    fix: Fix | None
    statement_line: int
    statement_end_line: int
    cell: int | None = None
