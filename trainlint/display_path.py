"""How paths are shown: relative to the working directory where that is shorter."""

from __future__ import annotations

import os


def display_path(path: str, working_directory: str) -> str:
    """An absolute path as users see it."""
    prefix = working_directory.rstrip(os.sep) + os.sep
    return path.removeprefix(prefix)
