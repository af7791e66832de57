"""What a run learns about one file: plain data that processes exchange and the cache keeps."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from trainlint.config.selection import RuleSet
from trainlint.finding import Finding
from trainlint.search import Search


class EditMode(enum.Enum):
    """What a run does to the files, besides checking them."""

    NONE = "none"
    FIX = "fix"
    SHOW_FIXES = "show fixes"
    ADD_IGNORES = "add ignores"


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How every file of a run is checked. Paths in differences start at ``working_directory``."""

    working_directory: str
    use_scout: bool = True
    edit: EditMode = EditMode.NONE
    unsafe_fixes: bool = False


@dataclass(frozen=True, slots=True)
class FileTask:
    """One file to check: absolute path, its project's root, size in bytes and its rules.

    ``suspects`` are the codes of those rules whose scouts suspect the file as it is on disk; None
    where nobody has asked them yet.
    """

    path: str
    root: str
    size: int
    rules: RuleSet
    suspects: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """The answer for one file.

    ``problem``: why it could not be checked, in one line; ``is_fault``: the reason is a mistake
    in trainlint, and ``details`` is its traceback. ``content_hash`` is of the bytes that were
    checked, None if they could not be read. ``consulted`` and ``searches`` are what else the
    answer depends on (see ``CheckResult``). ``edit_count`` repairs were made, or
    comments added; ``diff`` shows them when they were not written.
    """

    path: str
    findings: tuple[Finding, ...] = ()
    problem: str | None = None
    is_fault: bool = False
    details: str = ""
    content_hash: str | None = None
    consulted: frozenset[str] = frozenset()
    searches: frozenset[Search] = frozenset()
    edit_count: int = 0
    diff: str = ""
