"""Where the files are that the script was kept from writing, known to all its processes.

The map is a file of lines, one change each, which every process and rank of a run reads on: what
one rank saves, the others can load.
"""

from __future__ import annotations

import json
import os
from pathlib import Path


class Moves:
    """A map from the path a script asked for to where its contents are."""

    def __init__(self, log: Path) -> None:
        # Taken before they are wrapped; positioned reads, because forked processes share the file.
        self._stat, self._pread, self._write = os.stat, os.pread, os.write
        self._log = log
        self._file = os.open(log, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        self._places: dict[str, str] = {}
        self._read = 0

    def find(self, absolute: str) -> str | None:
        """Where the contents of a path are; ``None`` for a path that was left alone."""
        size = self._stat(self._log).st_size
        if size != self._read:
            self._read_on(size - self._read)
        return self._places.get(absolute)

    def add(self, absolute: str, place: str) -> None:
        """The contents of a path are at ``place`` from now on."""
        self._append(absolute, place)

    def forget(self, absolute: str) -> None:
        """The path means itself again."""
        self._append(absolute, None)

    def _append(self, absolute: str, place: str | None) -> None:
        self._write(self._file, (json.dumps([absolute, place]) + "\n").encode())

    def _read_on(self, size: int) -> None:
        new = self._pread(self._file, size, self._read)
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        for absolute, place in map(json.loads, whole.splitlines()):
            if place is None:
                self._places.pop(absolute, None)
            else:
                self._places[absolute] = place
