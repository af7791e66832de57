"""Writes go to the run folder; what was written there is read back from there.

A file that existed before the run is never opened for writing, moved over or removed. Checkpoints
and TensorBoard logs always go to the run folder. Other new files are created where the script wants
them, and listed.
"""

from __future__ import annotations

import builtins
import io
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from trainlint.runtime.patches import Patches
from trainlint.runtime.recorder import Recorder

MOST_LISTED = 50
_NEVER = ("/dev/", "/proc/", "/sys/")


def _absolute(path: Any) -> str | None:
    """The absolute path, or ``None`` for descriptors, streams and things that are no path."""
    if isinstance(path, (str, os.PathLike)):
        text = os.fspath(path)
        return os.path.abspath(text) if isinstance(text, str) else None
    return None


class Files:
    """A map from paths the script asked for to where their contents really are."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.folder = recorder.spec.run_folder / f"files.{recorder.spec.suffix}"
        self._moved: dict[str, str] = {}
        self._own: set[str] = set()
        self._temporary = os.path.abspath(tempfile.gettempdir()) + os.sep
        self._stat = os.stat

    def install(self, patches: Patches) -> None:
        """Wrap opening, looking at, moving and removing."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for owner in (builtins, io):
            patches.wrap(owner, "open", self._make_open)
        for name in ("stat", "listdir"):
            patches.wrap(os, name, self._make_read)
        for name in ("remove", "unlink", "rmdir"):
            patches.wrap(os, name, self._make_remove)
        for name in ("rename", "replace"):
            patches.wrap(os, name, self._make_move)
        patches.wrap(shutil, "rmtree", self._make_rmtree)

    def install_torch(self, patches: Patches) -> None:
        """Wrap the savers that do not go through ``open``."""
        import torch

        patches.wrap(torch, "save", self._make_save)
        patches.wrap(torch, "load", self._make_read)
        self._install_tensorboard(patches)
        self._install_safetensors(patches)

    def _install_tensorboard(self, patches: Patches) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return

        def make(original: Any) -> Any:
            def init(writer: Any, log_dir: Any = None, *args: Any, **kwargs: Any) -> None:
                self._note(f"TensorBoard {log_dir or 'runs/'}")
                original(writer, str(self.folder / "tensorboard"), *args, **kwargs)

            return init

        patches.wrap(SummaryWriter, "__init__", make)

    def _install_safetensors(self, patches: Patches) -> None:
        try:
            import safetensors.torch as saver
        except ImportError:
            return
        for name in ("save_file", "save_model"):
            patches.wrap(saver, name, self._make_save)
        for name in ("load_file",):
            patches.wrap(saver, name, self._make_read)

    def where(self, path: Any) -> Any:
        """Where to read a path from."""
        absolute = _absolute(path)
        return self._moved.get(absolute, path) if absolute is not None else path

    def _inside(self, absolute: str) -> bool:
        return absolute.startswith(str(self.recorder.spec.run_folder)) or absolute.startswith(
            _NEVER
        )

    def _note(self, text: str) -> None:
        listed = self.recorder.trace.redirected
        if text not in listed and len(listed) < MOST_LISTED:
            listed.append(text)

    def _redirect(self, absolute: str, keep: bool) -> str:
        """Give a path a home in the run folder, with its present contents if asked."""
        if absolute not in self._moved:
            new = self.folder / f"{len(self._moved):03d}-{Path(absolute).name}"
            self._moved[absolute] = str(new)
            self._note(absolute)
            if keep and os.path.isfile(absolute):
                shutil.copyfile(absolute, new)
        return self._moved[absolute]

    def _exists(self, absolute: str) -> bool:
        try:
            self._stat(absolute)
        except (OSError, ValueError):
            return False
        return absolute not in self._own

    def _protected(self, absolute: str) -> bool:
        """Whether a path is the user's: there before the run, and not in the temporary folder."""
        elsewhere = not self._inside(absolute) and not absolute.startswith(self._temporary)
        return elsewhere and self._exists(absolute)

    def _make_open(self, original: Any) -> Any:
        def opened(file: Any, mode: Any = "r", *args: Any, **kwargs: Any) -> Any:
            return original(self._open_path(file, mode), mode, *args, **kwargs)

        return opened

    def _open_path(self, file: Any, mode: Any) -> Any:
        absolute = _absolute(file)
        if absolute is None or self._inside(absolute) or not isinstance(mode, str):
            return file
        if absolute in self._moved:
            return self._moved[absolute]
        if not set(mode) & set("wax+"):
            return file
        if self._exists(absolute):
            keep = "w" not in mode and "x" not in mode
            return file if "x" in mode else self._redirect(absolute, keep)
        self._created(absolute)
        return file

    def _created(self, absolute: str) -> None:
        self._own.add(absolute)
        listed = self.recorder.trace.created
        if len(listed) < MOST_LISTED:
            listed.append(absolute)

    def _make_save(self, original: Any) -> Any:
        def save(value: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            absolute = _absolute(target)
            if absolute is not None and not self._inside(absolute):
                target = self._redirect(absolute, keep=False)
            return original(value, target, *args, **kwargs)

        return save

    def _make_read(self, original: Any) -> Any:
        def read(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
            return original(self.where(path), *args, **kwargs)

        return read

    def _make_remove(self, original: Any) -> Any:
        def remove(path: Any, *args: Any, **kwargs: Any) -> Any:
            absolute = _absolute(path)
            if absolute is None or kwargs.get("dir_fd") is not None or self._inside(absolute):
                return original(path, *args, **kwargs)
            if absolute in self._moved:
                moved = self._moved.pop(absolute)
                return original(moved) if self._exists(moved) else None
            if self._protected(absolute):
                self._note(f"{absolute} (not removed)")
                return None
            return original(path, *args, **kwargs)

        return remove

    def _make_move(self, original: Any) -> Any:
        def move(source: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            here, there = _absolute(source), _absolute(target)
            if here is None or there is None or self._inside(there):
                return original(source, target, *args, **kwargs)
            if here in self._moved:
                self._moved[there] = self._moved.pop(here)
                self._note(there)
                return None
            if self._exists(here) or self._exists(there):
                if here.startswith(self._temporary) and there.startswith(self._temporary):
                    return original(source, target, *args, **kwargs)
                return shutil.copyfile(here, self._redirect(there, keep=False))
            self._own.add(there)
            return original(source, target, *args, **kwargs)

        return move

    def _make_rmtree(self, original: Any) -> Any:
        def rmtree(path: Any, *args: Any, **kwargs: Any) -> Any:
            absolute = _absolute(path)
            if absolute is not None and self._protected(absolute):
                self._note(f"{absolute} (not removed)")
                return None
            return original(path, *args, **kwargs)

        return rmtree
