"""Checks source that comes in on standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainlint.config import SettingsResolver
from trainlint.discovery import is_left_out
from trainlint.outcome import CheckOptions, FileOutcome
from trainlint.project_root import ProjectRoots
from trainlint.runner import task_for


@dataclass(frozen=True, slots=True)
class StdinAnswer:
    """``outcome`` is None for a file that is excluded; ``edited`` is the content after repairs."""

    outcome: FileOutcome | None
    path: str
    edited: bytes

    def source_lines(self, path: str, cell: int | None) -> Sequence[str]:
        """The lines for code frames: there is no file to read them from."""
        from trainlint.analysis import SourceError
        from trainlint.document import Document

        try:
            parts = [text for _, text in Document.from_bytes(Path(self.path), self.edited).parts()]
        except SourceError:
            return ()
        return parts[0 if cell is None else cell - 1].splitlines()


def check_stdin(path: str, settings: SettingsResolver, options: CheckOptions) -> StdinAnswer:
    """Check what comes in as if it were the file ``path`` (absolute).

    Raises:
        ConfigError: a configuration file cannot be used.
    """
    data = sys.stdin.buffer.read()
    holding = settings.for_folder(os.path.dirname(path))
    if holding.force_exclude and is_left_out(path, False, holding):
        return StdinAnswer(None, path, data)
    from trainlint.file_check import FileChecker

    task = task_for(path, len(data), settings, ProjectRoots())
    outcome, edited = FileChecker(options).check_content(task, data)
    return StdinAnswer(outcome, path, edited)
