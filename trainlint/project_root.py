"""Which folder a file's project starts at: imports are followed, and searches end, there."""

from __future__ import annotations

import os

_MARKERS = ("trainlint.toml", "pyproject.toml", ".git", "setup.py", "setup.cfg")


class ProjectRoots:
    """The project root of every folder, each folder looked at once.

    It is the nearest folder upwards that holds a configuration, packaging or repository marker;
    without one, the folder that holds the file's topmost package. It depends on the file alone,
    never on which paths a run was asked to check.
    """

    def __init__(self) -> None:
        self._marked: dict[str, str | None] = {}

    def of_file(self, path: str) -> str:
        """The project root of an absolute file path."""
        folder = os.path.dirname(path)
        return self.nearest_marked(folder) or _above_packages(folder)

    def nearest_marked(self, folder: str) -> str | None:
        """This folder, or the nearest above, that holds a marker."""
        if folder not in self._marked:
            parent = os.path.dirname(folder)
            if any(os.path.exists(os.path.join(folder, marker)) for marker in _MARKERS):
                self._marked[folder] = folder
            else:
                self._marked[folder] = None if parent == folder else self.nearest_marked(parent)
        return self._marked[folder]


def _above_packages(folder: str) -> str:
    while os.path.isfile(os.path.join(folder, "__init__.py")) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return folder
