"""Words and paths that several formats share."""

from __future__ import annotations

import os
from pathlib import PurePath

from trainlint.finding import Applicability, Finding, Severity
from trainlint.output import colours
from trainlint.output.context import FileError, OutputContext


def place(finding: Finding) -> str:
    """``path:line:column``, and in a notebook ``path:cell N:line:column``."""
    cell = f"cell {finding.cell}:" if finding.cell is not None else ""
    return f"{finding.path}:{cell}{finding.line}:{finding.column}"


def fix_mark(finding: Finding) -> str:
    """``[*]`` for a safe fix, ``[-]`` for an unsafe one, nothing without a fix."""
    if finding.fix is None:
        return ""
    return "[*]" if finding.fix.applicability is Applicability.SAFE else "[-]"


def fix_option(finding: Finding) -> str:
    """The options that apply the finding's fix, with a warning where it needs a look."""
    safe = finding.fix is not None and finding.fix.applicability is Applicability.SAFE
    return "`--fix`" if safe else "unsafe: `--fix --unsafe-fixes`"


def file_error(error: FileError, colour: bool) -> str:
    """One line about a file that could not be checked."""
    label = colours.painted("error:", colours.of_severity(Severity.ERROR), colour)
    return f"{label} {error.path}: {error.message}"


def counted(number: int, noun: str) -> str:
    """``1 error``, ``2 errors``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def repository_path(path: str) -> str:
    """The path as services that know the repository want it: relative where it can be, with ``/``.

    They start the run in the repository's root.
    """
    if os.path.isabs(path):
        try:
            relative = os.path.relpath(path)
        except ValueError:  # on Windows, another drive
            relative = path
        path = path if relative.startswith("..") else relative
    return PurePath(path).as_posix()


def summary(context: OutputContext) -> str:
    """One sentence: how much was found and can be fixed; another one before it if some was."""
    fixed = f"Fixed {counted(context.fixed_count, 'finding')}. " if context.fixed_count else ""
    return fixed + _found(context)


def _found(context: OutputContext) -> str:
    if not context.findings:
        return "Nothing found in the other files." if context.errors else "All checks passed!"
    counts = [
        counted(context.count(severity), noun)
        for severity, noun in (
            (Severity.ERROR, "error"),
            (Severity.WARNING, "warning"),
            (Severity.INFO, "info"),
        )
        if severity is not Severity.INFO or context.count(severity)
    ]
    return f"Found {', '.join(counts)}{_fixable(context)}."


def _fixable(context: OutputContext) -> str:
    fixable, hidden = context.fixable_count, context.hidden_fix_count
    if not fixable and not hidden:
        return ""
    option = "--fix --unsafe-fixes" if context.unsafe_fixes else "--fix"
    parts = [f"{fixable} fixable with `{option}`"] if fixable else []
    if hidden and fixable:
        parts.append(f"{hidden} more with `--unsafe-fixes`")
    elif hidden:
        parts.append(f"{hidden} fixable with `--fix --unsafe-fixes`")
    return f" ({', '.join(parts)})"
