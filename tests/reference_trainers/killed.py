"""Run a trainer that gets SIGKILL at a chosen moment: `killed.py logging 12 TRAINER ARGUMENTS...`.

From within, because the moment is then exact: a test that watches the log from outside, on a busy
machine, sees the step long after it is over, or the run at its end.
"""

import csv
import os
import runpy
import signal
import sys
from collections.abc import Iterable
from typing import Any


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_when_step_is_logged(last: int) -> None:
    plain = csv.writer

    class Writer:
        def __init__(self, file: Any) -> None:
            self.file = file

        def writerows(self, rows: Iterable[tuple[int, str, float]]) -> None:
            kept = list(rows)
            plain(self.file).writerows(kept)
            if kept[0][0] >= last:
                self.file.flush()
                die()

    csv.writer = Writer  # type: ignore[misc, assignment]


def die_in_the_middle_of_checkpoint(last: int) -> None:
    """The `last`-th one: its bytes are written, and the file does not have its name yet."""
    saved = 0

    def fsync(_: int) -> None:
        nonlocal saved
        saved += 1
        if saved == last:
            die()

    os.fsync = fsync  # type: ignore[assignment]


if __name__ == "__main__":
    moment, last, *sys.argv = sys.argv[1:]
    if moment == "logging":
        die_when_step_is_logged(int(last))
    else:
        die_in_the_middle_of_checkpoint(int(last))
    runpy.run_path(sys.argv[0], run_name="__main__")
