"""Prints what a run found and decides on the exit code."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from trainlint.catalogue import installed_rules
from trainlint.cli.arguments import CheckArguments
from trainlint.cli.faults import HOW_TO_REPORT, UsageFault
from trainlint.cli.terminal import say, wants_colour, write_output
from trainlint.config import Settings
from trainlint.display_path import display_path
from trainlint.finding import Finding
from trainlint.outcome import CheckOptions, EditMode, FileOutcome
from trainlint.output import FileError, OutputContext, render, render_statistics
from trainlint.output.context import SourceLines
from trainlint.output.source_lines import read_source_lines

if TYPE_CHECKING:
    from trainlint.cli.stdin import StdinAnswer

_FOR_PEOPLE = ("full", "concise")


class Report:
    """The outcomes of a run, ready to be told."""

    def __init__(
        self,
        arguments: CheckArguments,
        settings: Settings,
        options: CheckOptions,
        working_directory: str,
        outcomes: Sequence[FileOutcome],
    ) -> None:
        self._arguments = arguments
        self._settings = settings
        self._edit = options.edit
        self._working_directory = working_directory
        self._outcomes = sorted(outcomes, key=lambda outcome: outcome.path)

    def finish(self) -> int:
        """Print everything, and return the exit code.

        Raises:
            UsageFault: the baseline or the output file cannot be read or written.
        """
        self._talk_about_faults()
        if self._arguments.write_baseline:
            return self._write_baseline()
        if self._edit is EditMode.SHOW_FIXES:
            return self._show_fixes()
        if self._edit is EditMode.ADD_IGNORES:
            self._talk_about_ignores()
        if self._has_output:
            write_output(self._text(read_source_lines), self._arguments.output_file)
        return self._exit_code

    def finish_stdin(self, answer: StdinAnswer) -> int:
        """The same for standard input: edited source is printed, and findings make way for it.

        Raises:
            UsageFault: the baseline or the output file cannot be read or written.
        """
        self._talk_about_faults()
        if self._edit is EditMode.SHOW_FIXES:
            return self._show_fixes()
        prints_source = self._edit is not EditMode.NONE
        if prints_source:
            sys.stdout.buffer.write(answer.edited)
        if self._has_output:
            text = self._text(answer.source_lines)
            if prints_source:
                say(text.rstrip("\n"))
            else:
                write_output(text, self._arguments.output_file)
        return self._exit_code

    @cached_property
    def _all_findings(self) -> list[Finding]:
        return [
            dataclasses.replace(finding, path=self._shown(outcome.path))
            for outcome in self._outcomes
            for finding in outcome.findings
        ]

    @cached_property
    def _findings(self) -> list[Finding]:
        """Those that the baseline does not hide."""
        if self._arguments.baseline is None:
            return self._all_findings
        from pathlib import Path

        from trainlint.baseline import Baseline, BaselineError

        names = {rule.code: rule.name for rule in self._settings.selectors().rules}
        try:
            baseline = Baseline.read(Path(self._arguments.baseline))
        except BaselineError as error:
            raise UsageFault(str(error)) from error
        result = baseline.apply(
            self._all_findings,
            {self._shown(outcome.path) for outcome in self._outcomes},
            {names[code] for code in self._settings.rule_set.codes},
        )
        if result.stale and not self._arguments.quiet:
            say(
                f"{len(result.stale)} entries of the baseline allow more than there is: "
                "update it with --write-baseline"
            )
        return result.findings

    @property
    def _has_output(self) -> bool:
        """People want to hear nothing at all of a run without files; programs want a document."""
        return bool(self._outcomes) or self._settings.output_format not in _FOR_PEOPLE

    @property
    def _exit_code(self) -> int:
        if any(outcome.problem is not None for outcome in self._outcomes):
            return 2
        if self._arguments.exit_zero:
            return 0
        fail_on = self._settings.fail_on
        return int(any(finding.severity.at_least(fail_on) for finding in self._findings))

    def _text(self, source_lines: SourceLines) -> str:
        context = OutputContext(
            findings=self._findings,
            errors=[
                FileError(self._shown(outcome.path), outcome.problem)
                for outcome in self._outcomes
                if outcome.problem is not None
            ],
            rules=installed_rules() if self._settings.output_format == "sarif" else (),
            file_count=len(self._outcomes),
            fixed_count=self._edit_count if self._edit is EditMode.FIX else 0,
            unsafe_fixes=self._settings.unsafe_fixes,
            colour=self._wants_colour(),
            quiet=self._arguments.quiet,
            source_lines=source_lines,
        )
        if self._arguments.statistics:
            return render_statistics(context, as_json=self._settings.output_format == "json")
        return render(self._settings.output_format, context)

    def _wants_colour(self) -> bool:
        if self._arguments.output_file is not None:
            return self._arguments.colour == "always"
        return wants_colour(self._arguments.colour, sys.stdout)

    @property
    def _edit_count(self) -> int:
        return sum(outcome.edit_count for outcome in self._outcomes)

    def _show_fixes(self) -> int:
        """Like ruff: the differences are the output, and any difference is a failure."""
        diff = "".join(outcome.diff for outcome in self._outcomes)
        write_output(diff, self._arguments.output_file)
        self._talk_about_problems()
        if not self._arguments.quiet:
            say(f"Would fix {_counted(self._edit_count, 'finding')}.")
        if any(outcome.problem is not None for outcome in self._outcomes):
            return 2
        return int(bool(diff) and not self._arguments.exit_zero)

    def _write_baseline(self) -> int:
        self._talk_about_problems()
        from pathlib import Path

        from trainlint.baseline import BaselineError, write_baseline

        path = Path(self._arguments.baseline or "")
        try:
            count = write_baseline(path, self._all_findings)
        except BaselineError as error:
            raise UsageFault(str(error)) from error
        if not self._arguments.quiet:
            say(f"Recorded {_counted(count, 'finding')} in {path}.")
        return 2 if any(outcome.problem is not None for outcome in self._outcomes) else 0

    def _talk_about_ignores(self) -> None:
        if not self._arguments.quiet:
            say(f"Added {_counted(self._edit_count, 'ignore comment')}.")

    def _talk_about_problems(self) -> None:
        for outcome in self._outcomes:
            if outcome.problem is not None:
                say(f"{self._shown(outcome.path)}: {outcome.problem}")

    def _talk_about_faults(self) -> None:
        faults = [outcome for outcome in self._outcomes if outcome.is_fault]
        for outcome in faults:
            if self._arguments.verbose and outcome.details:
                say(f"{self._shown(outcome.path)}:\n{outcome.details.rstrip()}")
        if faults:
            say(f"{HOW_TO_REPORT}" if self._arguments.verbose else f"{HOW_TO_REPORT} (-v: more)")

    def _shown(self, path: str) -> str:
        return display_path(path, self._working_directory)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
