"""Which line of the user's own source is responsible for a call that an instrument saw."""

from __future__ import annotations

import linecache
import os
import site
import sys
import sysconfig
from types import FrameType

from trainlint.runtime.trace import Place

# Also those of `pip install --user`, and of a folder on PYTHONPATH.
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _library_folders() -> tuple[str, ...]:
    found = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    found |= set(site.getsitepackages()) if hasattr(site, "getsitepackages") else set()
    return tuple(os.path.abspath(path) + os.sep for path in found if path)


_LIBRARIES = _library_folders()


def is_our_file(filename: str) -> bool:
    """Whether a file belongs to the probe."""
    return os.path.abspath(filename).startswith(_OURS)


def is_user_file(filename: str) -> bool:
    """Whether a file is the user's, rather than Python's, an installed package's or ours."""
    if filename.startswith("<") and not filename.startswith("<ipython"):
        return False
    path = os.path.abspath(filename)
    is_installed = path.startswith(_LIBRARIES) or not _INSTALLED.isdisjoint(path.split(os.sep))
    return not is_our_file(path) and not is_installed


def short_path(file: str) -> str:
    """A path as the user would write it: relative if it is below the working directory."""
    path = os.path.relpath(file) if os.path.isabs(file) else file
    return file if path.startswith("..") else path


def place_of(frame: FrameType) -> Place:
    """The line that a frame is executing."""
    code = frame.f_code
    text = linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals).strip()
    return Place(code.co_filename, frame.f_lineno, text, code.co_name)


def user_frame() -> FrameType | None:
    """The innermost frame of the user's own source, if the caller descends from one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    return None


def user_place() -> Place | None:
    """The line of the user's own source that led here."""
    frame = user_frame()
    return place_of(frame) if frame is not None else None


def called_from(fragment: str) -> bool:
    """Whether a file whose path contains ``fragment`` is among the callers."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if fragment in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False
