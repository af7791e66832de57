"""Replay: the same run, looking at the output of each operation, to name the first bad one."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from trainlint.runtime.instruments.book import ParamBook
from trainlint.runtime.instruments.modules import Modules, in_backward
from trainlint.runtime.instruments.optimizers import Optimizers
from trainlint.runtime.instruments.tensors import tensors_in
from trainlint.runtime.places import user_place
from trainlint.runtime.recorder import Recorder
from trainlint.runtime.trace import BadOperation, Step

# Operations whose outputs are not values yet, or are infinite because they were told to be.
_UNFILLED = ("empty", "resize", "new_empty", "set_")
_TOLD = ("full", "fill", "scalar_tensor", "lift", "where", "copy", "clone", "detach", "view")


class _Finite(TorchDispatchMode):
    def __init__(self, owner: Replay) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.owner = owner

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = operation(*args, **(kwargs or {}))
        if self.owner.recorder.trace.bad is None and not self.owner.looking:
            self.owner.look(str(operation), args, result)
        return result


class Replay:
    """Enters the mode when the bad step is near."""

    def __init__(
        self, recorder: Recorder, book: ParamBook, modules: Modules, optimizers: Optimizers
    ) -> None:
        self.recorder = recorder
        self.book = book
        self.modules = modules
        self.looking = False
        self._mode: _Finite | None = None
        modules.on_root_start.append(lambda *_: self._enter())
        optimizers.on_step.append(self._step)

    def _enter(self) -> None:
        if self._mode is None and self.recorder.step >= self.recorder.spec.replay_from:
            self._mode = _Finite(self)
            self._mode.__enter__()  # type: ignore[no-untyped-call]

    def _step(self, step: Step) -> None:
        if self.recorder.trace.bad is not None:
            self.recorder.spec.budget = 0.0

    def look(self, operation: str, args: Any, result: Any) -> None:
        """Record the operation if it turned finite inputs into a non-finite output."""
        name = operation.removeprefix("aten.").split(".")[0]
        if any(part in name for part in _UNFILLED) or not self.recorder.active():
            return
        self.looking = True
        try:
            kind = _bad(result)
            if not kind or (kind == "inf" and any(part in name for part in _TOLD)):
                return
            given = [t for t in tensors_in(args) if t.is_floating_point()]
            if any(_bad(t) for t in given):
                return
            inside = self.modules.stack
            self.recorder.trace.bad = BadOperation(
                name,
                self.book.module_name(inside[-1]) if inside else "",
                user_place(),
                self.recorder.step,
                in_backward(),
                [_describe(t) for t in given[:3]],
            )
        finally:
            self.looking = False


def _bad(value: Any) -> str:
    for tensor in tensors_in(value):
        if tensor.is_floating_point() and tensor.numel() and not tensor.is_sparse:
            if bool(torch.isnan(tensor).any()):
                return "nan"
            if bool(torch.isinf(tensor).any()):
                return "inf"
    return ""


def _describe(tensor: torch.Tensor) -> str:
    if not tensor.numel():
        return f"{list(tensor.shape)}"
    low, high = float(tensor.min()), float(tensor.max())
    return f"{list(tensor.shape)} from {low:.4g} to {high:.4g}"
