"""What ``trainlint check`` does with its arguments, from settings to exit code."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from trainlint.cache import CacheFolder, Catalogue, load_catalogue
from trainlint.catalogue import RuleFacts, RuleLoadError
from trainlint.cli.arguments import CheckArguments
from trainlint.cli.faults import UsageFault
from trainlint.cli.progress import ProgressBar
from trainlint.cli.report import Report
from trainlint.cli.show import files_text, settings_text
from trainlint.cli.terminal import say, shows_progress, write_output
from trainlint.config import ConfigError, Settings, SettingsResolver
from trainlint.discovery import Discovery, discover
from trainlint.garbage import starting_up
from trainlint.outcome import CheckOptions, EditMode, FileOutcome
from trainlint.runner import Run, check_files


def run_check(arguments: CheckArguments) -> int:
    """Check, report, and return the exit code.

    Raises:
        UsageFault: something is wrong with the arguments, a configuration file or a baseline.
    """
    try:
        with starting_up():
            return _CheckRun(arguments).run()
    except (ConfigError, RuleLoadError) as error:
        raise UsageFault(str(error)) from error


class _CheckRun:
    def __init__(self, arguments: CheckArguments) -> None:
        self._arguments = arguments
        self._started = time.monotonic()
        self._working_directory = _working_directory()
        self._resolver = SettingsResolver(
            arguments.options, self._working_directory, self._load_rules
        )
        self._settings = self._resolver.for_run()
        self._catalogue: Catalogue | None = None
        # Wrong selectors are an error even when no file is found that they would apply to.
        self._rules = self._settings.rule_set

    def run(self) -> int:
        if self._arguments.show_settings:
            write_output(settings_text(self._settings), self._arguments.output_file)
            return 0
        if self._arguments.reads_stdin:
            return self._run_on_stdin()
        found = discover(self._arguments.paths, self._resolver, self._working_directory)
        if self._arguments.show_files:
            write_output(files_text(found.files), self._arguments.output_file)
            return 0
        outcomes = self._check(found)
        outcomes += [FileOutcome(each.path, problem=each.message) for each in found.problems]
        if not outcomes and shows_progress() and not self._arguments.quiet:
            say("warning: there are no Python files below the given paths")
        self._talk_about_run(len(found.files))
        return self._report(outcomes).finish()

    def _check(self, found: Discovery) -> list[FileOutcome]:
        shown = shows_progress() and not self._arguments.quiet
        with ProgressBar(len(found.files), shown) as progress:
            return check_files(
                Run(
                    files=found.files,
                    settings=self._resolver,
                    options=self._options(),
                    jobs=self._arguments.jobs,
                    fingerprint=self._fingerprint(),
                    advance=progress.advance,
                )
            )

    def _run_on_stdin(self) -> int:
        from trainlint.cli.stdin import check_stdin

        name = self._arguments.stdin_filename or "-"
        path = os.path.normpath(os.path.join(self._working_directory, name))
        answer = check_stdin(path, self._resolver, self._options())
        report = self._report([answer.outcome] if answer.outcome else [])
        return report.finish_stdin(answer)

    def _report(self, outcomes: Sequence[FileOutcome]) -> Report:
        return Report(
            self._arguments, self._settings, self._options(), self._working_directory, outcomes
        )

    def _options(self) -> CheckOptions:
        return CheckOptions(
            working_directory=self._working_directory,
            use_scout=self._arguments.use_scout,
            edit=self._edit_mode(),
            unsafe_fixes=self._settings.unsafe_fixes,
        )

    def _edit_mode(self) -> EditMode:
        if self._arguments.add_ignore:
            return EditMode.ADD_IGNORES
        if self._arguments.diff:
            return EditMode.SHOW_FIXES
        return EditMode.FIX if self._settings.fix else EditMode.NONE

    def _load_rules(self, settings: Settings) -> tuple[RuleFacts, ...]:
        folder = CacheFolder(settings.cache_dir) if self._arguments.use_cache else None
        self._catalogue = load_catalogue(folder)
        return self._catalogue.rules

    def _fingerprint(self) -> str | None:
        return (
            self._catalogue.fingerprint if self._catalogue and self._arguments.use_cache else None
        )

    def _talk_about_run(self, file_count: int) -> None:
        if self._arguments.verbose:
            seconds = time.monotonic() - self._started
            say(f"settings: {self._settings.source}")
            say(f"rules: {len(self._rules.codes)} selected")
            say(f"checked {file_count} files in {seconds:.2f} s")


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise UsageFault("the working directory no longer exists") from error
