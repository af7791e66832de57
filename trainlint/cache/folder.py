"""A folder of small JSON documents that may vanish, break, or be written by others at any time."""

from __future__ import annotations

import json
import os
from typing import Any

from trainlint import __version__

_IGNORE_EVERYTHING = "# Written by trainlint: a cache has no place in a repository.\n*\n"


class CacheFolder:
    """Documents below ``path``, in a folder of their own for each version of trainlint.

    JSON because a cache may come with a repository: reading it must never run what it says.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def read(self, name: str) -> dict[str, Any] | None:
        """The document, or None if there is none that can be used."""
        try:
            with open(self._file(name), "rb") as file:
                document = json.loads(file.read())
        except (OSError, ValueError, RecursionError):
            return None
        return document if isinstance(document, dict) else None

    def write(self, name: str, document: dict[str, Any]) -> bool:
        """Replace the document in one step; whether that worked (a cache may be read-only)."""
        import tempfile

        target = self._file(name)
        try:
            self._prepare()
            descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(target), suffix=".tmp")
        except OSError:
            return False
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(json.dumps(document, separators=(",", ":")))
            os.replace(temporary, target)
        except OSError:
            os.unlink(temporary)
            return False
        return True

    def _file(self, name: str) -> str:
        return os.path.join(self.path, __version__, name + ".json")

    def _prepare(self) -> None:
        os.makedirs(os.path.join(self.path, __version__), exist_ok=True)
        ignore_file = os.path.join(self.path, ".gitignore")
        if not os.path.exists(ignore_file):
            with open(ignore_file, "w", encoding="utf-8") as file:
                file.write(_IGNORE_EVERYTHING)
