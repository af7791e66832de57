"""Checks one file, and repairs it if that was asked for."""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainlint.analysis import Project, SourceError
from trainlint.atomic_write import replace_content
from trainlint.cache import content_hash
from trainlint.catalogue import installed_rules
from trainlint.display_path import display_path
from trainlint.document import Document, unified_diff
from trainlint.engine import as_finding, check_file
from trainlint.finding import Finding, Severity
from trainlint.fixing import fix_source
from trainlint.outcome import CheckOptions, EditMode, FileOutcome, FileTask
from trainlint.rule import Report
from trainlint.search import Search
from trainlint.suppression import Suppressions, UnusedSuppression, add_ignores, remove_unused

_MAX_ROUNDS = 20
"""Repairs make room for repairs; rules that undo each other must not go on for ever."""


@dataclass(frozen=True, slots=True)
class _Judgement:
    """What there is to say about a document: reports with their findings (lines of its text)."""

    reports: list[Report]
    findings: list[Finding]
    unused: list[UnusedSuppression]
    consulted: frozenset[str]
    searches: frozenset[Search]

    def placed(self, document: Document) -> tuple[Finding, ...]:
        """All findings, where and in the order in which users see them."""
        findings = [*self.findings, *(each.finding for each in self.unused)]
        return tuple(
            sorted(map(document.place, findings), key=lambda f: (f.cell or 0, f.line, f.column))
        )


class FileChecker:
    """Checks any number of files; what it learns about a project serves the next file too."""

    def __init__(self, options: CheckOptions) -> None:
        self._options = options
        self._rules = {rule.code: rule for rule in installed_rules()}
        self._project = Project(Path())

    def check(self, task: FileTask) -> FileOutcome:
        """The answer for a file on disk. Repairs are written to it if the options say so.

        Never raises: what goes wrong is part of the answer.
        """
        try:
            data = Path(task.path).read_bytes()
        except OSError as error:
            return FileOutcome(task.path, problem=f"cannot read: {error.strerror}")
        outcome, edited = self.check_content(task, data)
        if edited == data or self._options.edit is EditMode.SHOW_FIXES:
            return outcome
        try:
            if Path(task.path).read_bytes() != data:
                return self._unedited(task, data, "changed while it was repaired; run again")
            replace_content(task.path, edited)
        except OSError as error:
            return self._unedited(task, data, f"cannot write: {error.strerror}")
        return outcome

    def _unedited(self, task: FileTask, data: bytes, problem: str) -> FileOutcome:
        """The answer for a file that could not be edited: what there is to say, and why."""
        options = dataclasses.replace(self._options, edit=EditMode.NONE)
        outcome, _ = FileChecker(options).check_content(task, data)
        return dataclasses.replace(outcome, problem=problem, content_hash=None)

    def check_content(self, task: FileTask, data: bytes) -> tuple[FileOutcome, bytes]:
        """The answer for a file with this content, and the content after repairs.

        Nothing is written. Never raises: what goes wrong is part of the answer.
        """
        try:
            document = Document.from_bytes(Path(task.path), data)
            try:
                return self._checked(task, document)
            except SourceError as error:
                raise SourceError(document.describe_error(str(error))) from error
        except SourceError as error:
            outcome = FileOutcome(task.path, problem=str(error), content_hash=content_hash(data))
        except Exception as error:  # a rule's mistake must cost its file only
            message = f"trainlint failed on this file: {type(error).__name__}: {error}"
            outcome = FileOutcome(
                task.path,
                problem=" ".join(message.split()),
                is_fault=True,
                details=traceback.format_exc(),
            )
        return outcome, data

    def _checked(self, task: FileTask, document: Document) -> tuple[FileOutcome, bytes]:
        edited, count = document, 0
        judgement = self._judge(task, document, task.suspects)
        if self._options.edit is EditMode.ADD_IGNORES:
            edited, count = _with_ignores(document, judgement)
            judgement = self._judge(task, edited)
        elif self._options.edit is not EditMode.NONE:
            edited, judgement, count = self._repaired(task, document, judgement)
        outcome = FileOutcome(
            path=task.path,
            findings=judgement.placed(edited),
            content_hash=content_hash(edited.data),
            consulted=judgement.consulted,
            searches=judgement.searches,
            edit_count=count,
            diff=self._diff(task, document, edited),
        )
        return outcome, edited.data

    def _judge(
        self, task: FileTask, document: Document, suspects: tuple[str, ...] | None = None
    ) -> _Judgement:
        """What the rules say; ``suspects`` are those whose scouts suspect it, if that is known."""
        rules = [self._rules[code] for code in task.rules.codes]
        result = check_file(
            document.source,
            self._project_at(task.root),
            rules if suspects is None else [self._rules[code] for code in suspects],
            use_scout=self._options.use_scout and suspects is None,
        )
        suppressions = Suppressions(document.text, tuple(self._rules.values()))
        shown: list[tuple[Report, Finding]] = []
        suppressed: list[Finding] = []
        for report in _wanted(result.reports, task.rules.chosen):
            finding = as_finding(report, document.source)
            if suppressions and suppressions.covers(finding):
                suppressed.append(finding)
            else:
                shown.append((report, finding))
        unused: list[UnusedSuppression] = []
        if suppressions:
            unused = suppressions.unused(task.path, suppressed, {rule.name for rule in rules})
        return _Judgement(
            [report for report, _ in shown],
            [finding for _, finding in shown],
            unused,
            frozenset(map(str, result.consulted)),
            result.searches,
        )

    def _repaired(
        self, task: FileTask, document: Document, judgement: _Judgement
    ) -> tuple[Document, _Judgement, int]:
        """Repair and check until nothing changes, and how many repairs that took."""
        count = 0
        for _ in range(_MAX_ROUNDS):
            text, repairs = self._repair_once(document.text, judgement)
            if text == document.text:
                break
            try:
                document = document.edited(text)
            except UnicodeEncodeError:
                break
            judgement = self._judge(task, document)
            count += repairs
        return document, judgement, count

    def _repair_once(self, text: str, judgement: _Judgement) -> tuple[str, int]:
        repairable = [report for report in judgement.reports if report.repair is not None]
        if repairable:
            result = fix_source(text, repairable, unsafe=self._options.unsafe_fixes)
            if result.applied:
                return result.text, len(result.applied)
        removable = [each for each in judgement.unused if each.finding.fix is not None]
        return remove_unused(text, removable), len(removable)

    def _diff(self, task: FileTask, before: Document, after: Document) -> str:
        if self._options.edit is not EditMode.SHOW_FIXES or before.data == after.data:
            return ""
        shown_path = display_path(task.path, self._options.working_directory)
        return unified_diff(shown_path, before, after)

    def _project_at(self, root: str) -> Project:
        """One project at a time: files come sorted by project, and models are large."""
        if str(self._project.root) != root:
            self._project = Project(Path(root))
        return self._project


def _with_ignores(document: Document, judgement: _Judgement) -> tuple[Document, int]:
    added = add_ignores(document.text, judgement.findings)
    return document.edited(added.text), added.count


def _wanted(reports: Sequence[Report], chosen: frozenset[str]) -> Iterable[Report]:
    """All but hints of rules that nobody asked for by name."""
    return (
        report
        for report in reports
        if report.severity is not Severity.INFO or report.rule.code in chosen
    )
