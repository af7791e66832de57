"""What the user gives the script to read: ``trainlint probe train.py < settings``, or a pipe.

Every phase reads it from the start, so it is kept in the run's folder. What a pipe has not said
within a moment is left out: nobody may be at its other end.
"""

from __future__ import annotations

import os
import select
import stat
import time
from pathlib import Path

MOMENT_SECONDS = 0.3
MOST_BYTES = 64 * 2**20


def keep_input(target: Path) -> bool:
    """Save what lies on standard input; whether there is anything."""
    try:
        kind = os.fstat(0).st_mode
    except OSError:  # closed
        return False
    if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
        return False
    said = b""
    until = time.monotonic() + MOMENT_SECONDS
    while len(said) < MOST_BYTES and _readable(until - time.monotonic()):
        more = os.read(0, 2**16)
        if not more:
            break
        said += more
    target.write_bytes(said)
    return bool(said)


def _readable(seconds: float) -> bool:
    return bool(select.select([0], [], [], max(0.0, seconds))[0])
