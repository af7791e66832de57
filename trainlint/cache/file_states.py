"""What files contain now, read only where their size or time says that they may have changed."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping

from trainlint.discovery import FileStat

_SETTLED_NS = 2_000_000_000
"""A file changed less than this before it was read may change again within the same timestamp:
the coarsest file systems count in steps of two seconds."""

State = tuple[int, int, str]
"""Size in bytes, modification time in ns (0: not to be trusted), hash of the content."""


def content_hash(data: bytes) -> str:
    """A short name for this content that no other content has."""
    import hashlib

    return hashlib.blake2b(data, digest_size=16).hexdigest()


def is_settled(modified_ns: int, looked_ns: int) -> bool:
    """Whether a file of this time, looked at then, cannot change again within the same time."""
    return modified_ns < looked_ns - _SETTLED_NS


class FileStates:
    """The current content hashes of files, each found out at most once.

    ``known`` are the states of an earlier run, by absolute path. ``refreshed``: some file had to
    be read although its content is the known one, so that remembering its new state pays.
    """

    def __init__(self, known: Mapping[str, State]) -> None:
        self.refreshed = False
        self._known = known
        self._now: dict[str, State | None] = {}
        self._started_ns = time.time_ns()

    def current(self, path: str, status: FileStat | None = None) -> str | None:
        """The hash of the file's content; None if there is no such file to be read."""
        if path not in self._now:
            self._now[path] = self._find(path, status)
        state = self._now[path]
        return None if state is None else state[2]

    def note(self, path: str, status: FileStat, data: bytes) -> str:
        """Take over the content that somebody read after ``status`` was taken; its hash."""
        digest = content_hash(data)
        self._now[path] = (status.size, status.modified_ns, digest)
        return digest

    def to_remember(self, path: str) -> State | None:
        """The state for the next run."""
        self.current(path)
        state = self._now[path]
        return state if state is None or self._is_settled(state) else (state[0], 0, state[2])

    def changed_meanwhile(self, path: str) -> bool:
        """Whether the file may have changed while this run looked at it."""
        self.current(path)
        state = self._now[path]
        status = _status(path)
        if state is None or status is None:
            return (state is None) != (status is None)
        now = (status.size, status.modified_ns)
        return now != state[:2] or status.modified_ns >= self._started_ns

    def _find(self, path: str, status: FileStat | None) -> State | None:
        status = status or _status(path)
        if status is None:
            return None
        known = self._known.get(path)
        if known is not None and known[:2] == (status.size, status.modified_ns):
            return known
        try:
            with open(path, "rb") as file:
                digest = content_hash(file.read())
        except OSError:
            return None
        state = (status.size, status.modified_ns, digest)
        if known is not None and known[2] == digest and self._is_settled(state):
            self.refreshed = True
        return state

    def _is_settled(self, state: State) -> bool:
        return is_settled(state[1], self._started_ns)


def _status(path: str) -> FileStat | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return FileStat.of(status) if stat.S_ISREG(status.st_mode) else None
