"""Reads the lines that a code frame or a fingerprint needs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=8)
def read_source_lines(path: str, cell: int | None = None) -> Sequence[str]:
    """The lines of a file, or of one code cell of a notebook, without line ends.

    Empty when the file is gone, cannot be decoded, or has no such cell: a finding is reported
    even when its source can no longer be shown.
    """
    from trainlint.analysis.source import SourceError, SourceFile

    try:
        data = Path(path).read_bytes()
        if cell is not None:
            return _cell_lines(path, data, cell)
        source = SourceFile.from_bytes(Path(path), data)
    except (OSError, SourceError):
        return ()
    return [line.rstrip("\r\n") for line in source.lines]


def _cell_lines(path: str, data: bytes, cell: int) -> Sequence[str]:
    from trainlint.notebook import Notebook

    sources = Notebook.from_bytes(Path(path), data).cell_sources
    return sources[cell - 1].splitlines() if cell <= len(sources) else ()
