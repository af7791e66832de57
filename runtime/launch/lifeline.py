"""Ending when the parent ends, however it ends, and leaving no process behind (Linux)."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def die_with_parent(parent: int, how: signal.Signals = signal.SIGKILL) -> None:
    """Ask for a signal when the parent ends, or end at once if it has."""
    _ask(_PR_SET_PDEATHSIG, how)
    if sys.platform.startswith("linux") and os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of what children leave behind, daemons and sessions of their own too."""
    _ask(_PR_SET_CHILD_SUBREAPER, 1)


def end_orphans() -> None:
    """End all children of this process, and theirs."""
    while children := _children():
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


def _children() -> list[int]:
    pid = os.getpid()
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:  # another system
        return []
    return [int(child) for child in listed.split()]


def _ask(option: int, value: int) -> None:
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, int(value))
