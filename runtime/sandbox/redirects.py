"""Which paths are the user's, and where what the script writes really goes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlint.runtime.launch.spec import ChildSpec
from trainlint.runtime.sandbox.moves import Moves

if TYPE_CHECKING:
    from trainlint.runtime.recorder import Recorder

MOST_LISTED = 50
_SYSTEM = ("/dev/", "/proc/", "/sys/")


def absolute_path(path: Any) -> str | None:
    """The absolute path, or ``None`` for descriptors, streams and things that are no path."""
    if isinstance(path, (str, os.PathLike)):
        text = os.fspath(path)
        return os.path.abspath(text) if isinstance(text, str) else None
    return None


class Redirects:
    """Which paths are redirected, and a list of the new ones.

    New files and folders are also written to a journal, line by line, from which the parent tidies
    up after the script, however it ended.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.folder = recorder.spec.run_folder / f"files.{recorder.spec.suffix}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.moves = Moves(recorder.spec.moves_path)
        self._redirected = 0
        self.new: set[str] = set()
        self._started = recorder.spec.started
        self._stat = os.stat
        self._home = str(recorder.spec.run_folder) + os.sep
        self._journal = recorder.spec.journal_path.open("a", encoding="utf-8")
        self._made_before = _made_folders(recorder.spec)

    def where(self, path: Any) -> Any:
        """Where to read a path from."""
        absolute = absolute_path(path)
        return path if absolute is None else self.moves.find(absolute) or path

    def leaves_alone(self, absolute: str) -> bool:
        """Whether a path is no matter of ours: the run's own folder, devices."""
        return absolute.startswith((self._home, *_SYSTEM))

    def exists(self, absolute: str) -> bool:
        """Whether there is something at a path, however it came there."""
        try:
            self._stat(absolute)
        except (OSError, ValueError):
            return False
        return True

    def is_users(self, absolute: str) -> bool:
        """Whether something at this path was there before the script was started."""
        if absolute in self.new or self.leaves_alone(absolute):
            return False
        try:
            facts = self._stat(absolute)
        except (OSError, ValueError):
            return False
        # A folder's times change with its contents; the script's own folders are all known.
        return os.path.isdir(absolute) or facts.st_ctime <= self._started

    def made_by_earlier_phase(self, absolute: str) -> bool:
        """Whether the folder is left from the same script's earlier run."""
        return absolute in self._made_before

    def note(self, text: str) -> None:
        """List a path for the report."""
        listed = self.recorder.trace.redirected
        if text not in listed and len(listed) < MOST_LISTED:
            listed.append(text)

    def redirect(self, absolute: str, keep: bool) -> str:
        """Give a path a home in the run folder, with its present contents if asked."""
        known = self.moves.find(absolute)
        if known is not None:
            return known
        new = self.folder / f"{self._redirected:03d}-{Path(absolute).name}"
        self._redirected += 1
        if keep and os.path.isfile(absolute):
            shutil.copyfile(absolute, new)
        self.moves.add(absolute, str(new))
        self.note(absolute)
        return str(new)

    def created(self, absolute: str, folder: bool = False) -> None:
        """Note a new file or folder; results (after the first step) are tidied away later."""
        self.new.add(absolute)
        result = self.recorder.step > 0
        self._journal.write(json.dumps([absolute, folder, result]) + "\n")
        self._journal.flush()
        listed = self.recorder.trace.created
        if not folder and not result and len(listed) < MOST_LISTED:
            listed.append(absolute)
        elif not folder:
            self.note(absolute)


def _entries(journal: Path) -> list[tuple[str, bool, bool]]:
    """Path, whether it is a folder, whether it came after the first step."""
    lines = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
    return [(path, folder, result) for path, folder, result in map(json.loads, lines)]


def _made_folders(spec: ChildSpec) -> set[str]:
    """The folders that earlier phases of this probe made, on this rank."""
    journals = spec.run_folder.glob(f"new.*.{spec.rank}.jsonl")
    return {path for journal in journals for path, folder, _ in _entries(journal) if folder}


def tidy(spec: ChildSpec) -> None:
    """Move the script's results to the run folder, and remove the empty folders it made.

    What it created before its first step (downloads, caches) stays. What only a later phase creates
    is named after the run (by the time, by a number) and goes too.
    """
    entries = _entries(spec.journal_path)
    later = spec.phase != "observe"
    kept = spec.run_folder / f"results.{spec.suffix}"
    for position, (path, folder, result) in enumerate(entries):
        if (result or later) and not folder and os.path.isfile(path):
            kept.mkdir(exist_ok=True)
            shutil.move(path, kept / f"{position:03d}-{Path(path).name}")
    made = {path for path, folder, _ in entries if folder}
    for path in sorted(made, key=len, reverse=True):
        if os.path.isdir(path) and not os.listdir(path):
            os.rmdir(path)
