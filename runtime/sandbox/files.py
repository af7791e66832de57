"""Python's own ways to write, move and remove files.

A file that existed before the run is never opened for writing, moved over, changed or removed: the
script gets a copy in the run's folder, and reads that back. New files are created where the script
wants them, so that other programs can read them.
"""

from __future__ import annotations

import builtins
import io
import os
import shutil
from typing import Any

from trainlint.runtime.patches import Patches
from trainlint.runtime.sandbox.redirects import Redirects, absolute_path

# The position of ``opener`` among the arguments after the mode.
_OPENER = 5
# Set only by the whole of O_TMPFILE, which includes O_DIRECTORY.
_UNNAMED = getattr(os, "O_TMPFILE", 0) & ~getattr(os, "O_DIRECTORY", 0)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Files:
    """Wraps opening, looking at, moving, changing and removing."""

    def __init__(self, redirects: Redirects) -> None:
        self.redirects = redirects

    def install(self, patches: Patches) -> None:
        """Put the wrappers in place."""
        for owner in (builtins, io):
            patches.wrap(owner, "open", self._make_open)
        patches.wrap(os, "open", self._make_low_open)
        for name in ("stat", "lstat", "access", "listdir", "listxattr", "getxattr"):
            patches.wrap(os, name, self._make_read)
        for name in ("remove", "unlink", "rmdir"):
            patches.wrap(os, name, self._make_remove)
        for name in ("rename", "replace"):
            patches.wrap(os, name, self._make_move)
        for name in ("chmod", "chown", "utime", "truncate", "setxattr", "removexattr"):
            patches.wrap(os, name, self._make_change)
        patches.wrap(os, "mkdir", self._make_mkdir)
        patches.wrap(shutil, "rmtree", self._make_rmtree)
        patches.wrap(shutil, "copyfile", self._make_copy)

    def _make_open(self, original: Any) -> Any:
        def opened(file: Any, mode: Any = "r", *args: Any, **kwargs: Any) -> Any:
            absolute = absolute_path(file)
            # An opener of its own calls os.open; ``file`` may then be anything.
            own = kwargs.get("opener") is not None or len(args) > _OPENER
            if absolute is None or own or not isinstance(mode, str):
                return original(file, mode, *args, **kwargs)
            writing = bool(set(mode) & set("wax+"))
            keep = "w" not in mode
            target = self._target(file, absolute, writing, "x" in mode, keep)
            if target is not file and "x" in mode:
                mode = mode.replace("x", "w")
            return original(target, mode, *args, **kwargs)

        return opened

    def _target(self, file: Any, absolute: str, writing: bool, exclusive: bool, keep: bool) -> Any:
        """The path to open in place of ``file``."""
        redirects = self.redirects
        if redirects.leaves_alone(absolute):
            return file
        moved = redirects.moves.find(absolute)
        if moved is not None:
            return moved
        if not writing:
            return file
        if os.path.isdir(absolute):
            return file
        if redirects.is_users(absolute):
            # Creating what exists has to fail as it does without us.
            return file if exclusive else redirects.redirect(absolute, keep)
        if exclusive and not redirects.exists(absolute):
            # Left in place, the file would make the user's next run fail.
            return redirects.redirect(absolute, keep=False)
        if not redirects.exists(absolute):
            redirects.created(absolute)
        return file

    def _make_low_open(self, original: Any) -> Any:
        def opened(path: Any, flags: int, *args: Any, **kwargs: Any) -> Any:
            absolute = absolute_path(path)
            if absolute is None or kwargs.get("dir_fd") is not None or not flags & _WRITING:
                return original(self.redirects.where(path), flags, *args, **kwargs)
            if flags & (os.O_EXCL | _UNNAMED):  # how tempfile makes its files
                return original(path, flags, *args, **kwargs)
            target = self._target(path, absolute, True, False, not flags & os.O_TRUNC)
            if target is not path:
                flags |= os.O_CREAT
            return original(target, flags, *args, **kwargs)

        return opened

    def _make_read(self, original: Any) -> Any:
        def read(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
            return original(self.redirects.where(path), *args, **kwargs)

        return read

    def _make_mkdir(self, original: Any) -> Any:
        def mkdir(path: Any, *args: Any, **kwargs: Any) -> Any:
            absolute = absolute_path(path)
            if absolute is None or kwargs.get("dir_fd") is not None:
                return original(path, *args, **kwargs)
            if self.redirects.made_by_earlier_phase(absolute) and os.path.isdir(absolute):
                return None
            original(path, *args, **kwargs)
            if not self.redirects.leaves_alone(absolute):
                self.redirects.created(absolute, folder=True)
            return None

        return mkdir

    def _make_remove(self, original: Any) -> Any:
        def remove(path: Any, *args: Any, **kwargs: Any) -> Any:
            redirects = self.redirects
            absolute = absolute_path(path)
            if absolute is None or kwargs.get("dir_fd") is not None:
                return original(path, *args, **kwargs)
            moved = redirects.moves.find(absolute)
            if moved is not None:
                redirects.moves.forget(absolute)
                return original(moved) if redirects.exists(moved) else None
            if redirects.is_users(absolute):
                redirects.note(f"{absolute} (not removed)")
                return None
            return original(path, *args, **kwargs)

        return remove

    def _make_change(self, original: Any) -> Any:
        def change(path: Any, *args: Any, **kwargs: Any) -> Any:
            absolute = absolute_path(path)
            if absolute is None or kwargs.get("dir_fd") is not None:
                return original(path, *args, **kwargs)
            moved = self.redirects.moves.find(absolute)
            if moved is None and self.redirects.is_users(absolute):
                self.redirects.note(f"{absolute} (not changed)")
                return None
            return original(moved or path, *args, **kwargs)

        return change

    def _make_move(self, original: Any) -> Any:
        def move(source: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            redirects = self.redirects
            here, there = absolute_path(source), absolute_path(target)
            if here is None or there is None or redirects.leaves_alone(there):
                return original(source, target, *args, **kwargs)
            moved = redirects.moves.find(here)
            if moved is not None:
                redirects.moves.add(there, moved)
                redirects.moves.forget(here)
                redirects.note(there)
                return None
            if os.path.isfile(here) and (redirects.is_users(here) or redirects.is_users(there)):
                return shutil.copyfile(here, redirects.redirect(there, keep=False))
            if redirects.is_users(here):
                redirects.note(f"{here} (not moved)")
                return None
            if redirects.moves.find(there) is not None:
                redirects.moves.forget(there)
            original(source, target, *args, **kwargs)
            redirects.created(there, os.path.isdir(there))
            return None

        return move

    def _make_copy(self, original: Any) -> Any:
        def copyfile(source: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            """A copy of a checkpoint is a checkpoint."""
            here, there = absolute_path(source), absolute_path(target)
            if here is None or there is None:
                return original(source, target, *args, **kwargs)
            if self.redirects.moves.find(here) is not None:
                self.redirects.redirect(there, keep=False)
            return original(source, target, *args, **kwargs)

        return copyfile

    def _make_rmtree(self, original: Any) -> Any:
        def rmtree(path: Any, *args: Any, **kwargs: Any) -> Any:
            absolute = absolute_path(path)
            if absolute is not None and self.redirects.is_users(absolute):
                self.redirects.note(f"{absolute} (not removed)")
                return None
            return original(path, *args, **kwargs)

        return rmtree
