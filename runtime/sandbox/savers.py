"""Savers that write without Python's ``open``: torch, safetensors, TensorBoard."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import torch

from trainlint.runtime.patches import Patches
from trainlint.runtime.sandbox import pickling
from trainlint.runtime.sandbox.redirects import Redirects, absolute_path


class Savers:
    """Sends checkpoints and logs to the run's folder, and reads them back from there."""

    def __init__(self, redirects: Redirects) -> None:
        self.redirects = redirects

    def install(self, patches: Patches) -> None:
        """Wrap what torch brings now, and other packages when they are imported."""
        for owner in (torch, torch.jit, torch.export):
            if hasattr(owner, "save"):
                patches.wrap(owner, "save", self._at(1, self._target))
                patches.wrap(owner, "load", self._at(0, self.redirects.where))
        patches.wrap(torch, "save", _pickling_originals)
        patches.replace(pickle, "dump", pickling.dump)
        patches.replace(pickle, "dumps", pickling.dumps)
        patches.wrap(torch.jit.ScriptModule, "save", self._at(1, self._target))
        patches.when_imported("torch.utils.tensorboard", lambda m: self._tensorboard(m, patches))
        patches.when_imported("tensorboardX", lambda m: self._tensorboard(m, patches))
        patches.when_imported(
            "safetensors", lambda m: patches.wrap(m, "safe_open", self._at(0, self.redirects.where))
        )
        patches.when_imported("safetensors.torch", lambda m: self._safetensors(m, patches))

    def _tensorboard(self, module: Any, patches: Patches) -> None:
        def make(original: Any) -> Any:
            def init(writer: Any, *args: Any, **kwargs: Any) -> None:
                asked = args[0] if args else kwargs.pop("logdir", kwargs.pop("log_dir", None))
                self.redirects.note(f"TensorBoard {asked or 'runs/'}")
                original(writer, str(self.redirects.folder / "tensorboard"), *args[1:], **kwargs)

            return init

        patches.wrap(module.SummaryWriter, "__init__", make)

    def _safetensors(self, module: Any, patches: Patches) -> None:
        for name in ("save_file", "save_model"):
            patches.wrap(module, name, self._at(1, self._target))
        patches.wrap(module, "load_file", self._at(0, self.redirects.where))

    def _at(self, position: int, change: Callable[[Any], Any]) -> Any:
        """A wrapper for a function whose argument at ``position`` is the file."""

        def make(original: Any) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                name = next((n for n in ("f", "filename") if n in kwargs), None)
                if name is not None:
                    kwargs[name] = change(kwargs[name])
                elif len(args) > position:
                    args = (*args[:position], change(args[position]), *args[position + 1 :])
                return original(*args, **kwargs)

            return call

        return make

    def _target(self, target: Any) -> Any:
        absolute = absolute_path(target)
        if absolute is None or self.redirects.leaves_alone(absolute):
            return target
        return self.redirects.redirect(absolute, keep=False)


def _pickling_originals(original: Any) -> Any:
    """``torch.save`` of a model that holds functions which the instruments have wrapped."""

    def save(*args: Any, **kwargs: Any) -> Any:
        if len(args) < 3:
            kwargs.setdefault("pickle_module", pickling)
        try:
            return original(*args, **kwargs)
        finally:
            pickling.put_back()

    return save
