"""A progress bar for runs that take longer than a second."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PATIENCE_SECONDS = 1.0
_BETWEEN_UPDATES_SECONDS = 0.1


class ProgressBar:
    """Counts finished files; draws on stderr once the run has taken a second.

    It has no thread of its own, because worker processes may be forked while it is shown.
    """

    def __init__(self, total: int, shown: bool) -> None:
        self._total = total
        self._shown = shown
        self._done = 0
        self._next_update = time.monotonic() + _PATIENCE_SECONDS
        self._bar: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar[0].stop()

    def advance(self, count: int) -> None:
        """``count`` more files are done."""
        self._done += count
        if not self._shown or time.monotonic() < self._next_update:
            return
        self._next_update = time.monotonic() + _BETWEEN_UPDATES_SECONDS
        progress, task = self._bar = self._bar or self._start()
        progress.update(task, completed=self._done, refresh=True)

    def _start(self) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        progress = Progress(
            TextColumn("Checking"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("files"),
            console=Console(stderr=True),
            auto_refresh=False,
            transient=True,
        )
        progress.start()
        return progress, progress.add_task("", total=self._total)
