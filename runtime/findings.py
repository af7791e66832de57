"""What a check says: a finding, or why it could not look."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from trainlint.runtime.trace import Place


class Level(enum.Enum):
    """``fail``: an exact fact that makes training wrong. ``warn``: look at it. ``note``: shown."""

    FAIL = "fail"
    WARN = "warn"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One thing that was seen, with its evidence, the user's line and the fix."""

    rule: str
    level: Level
    title: str
    evidence: str
    fix: str
    place: Place | None = None


@dataclass(frozen=True)
class NotChecked:
    """A check that could not look, and why."""

    rule: str
    reason: str


Result = Finding | NotChecked
