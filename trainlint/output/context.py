"""What every output format is given: plain data, already decided, ready to be printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainlint.finding import Applicability, Finding, Severity
from trainlint.output.source_lines import read_source_lines

if TYPE_CHECKING:
    from trainlint.rule import Rule

SourceLines = Callable[[str, int | None], Sequence[str]]
"""The lines of a file (or of a notebook's code cell, counted from 1), without line ends.

Called with ``Finding.path`` and ``Finding.cell``; an empty sequence when there is nothing to show.
"""


@dataclass(frozen=True, slots=True)
class FileError:
    """A file that could not be checked, and why, in one line."""

    path: str
    message: str


@dataclass(frozen=True, slots=True)
class OutputContext:
    """Everything that a run has to say.

    ``findings`` are sorted by the caller and left in that order. ``rules`` are those that the
    SARIF format describes. ``fixed_count`` findings were repaired in this run and are not among
    ``findings``. With ``unsafe_fixes`` the user has already allowed them, so they count as
    fixable with ``--fix`` alone. ``colour`` and ``quiet`` (findings only, no summary) concern the
    formats for people.
    """

    findings: Sequence[Finding]
    errors: Sequence[FileError] = ()
    rules: Sequence[Rule] = ()
    file_count: int = 0
    fixed_count: int = 0
    unsafe_fixes: bool = False
    colour: bool = False
    quiet: bool = False
    source_lines: SourceLines = read_source_lines

    def count(self, severity: Severity) -> int:
        """How many findings are of this severity."""
        return sum(finding.severity is severity for finding in self.findings)

    def is_fixable(self, finding: Finding) -> bool:
        """Whether ``--fix``, with the options of this run, would repair the finding."""
        if finding.fix is None:
            return False
        return self.unsafe_fixes or finding.fix.applicability is Applicability.SAFE

    @property
    def fixable_count(self) -> int:
        """How many findings ``--fix`` would repair with the options of this run."""
        return sum(map(self.is_fixable, self.findings))

    @property
    def hidden_fix_count(self) -> int:
        """How many more findings ``--unsafe-fixes`` would make fixable."""
        with_fix = sum(finding.fix is not None for finding in self.findings)
        return with_fix - self.fixable_count
