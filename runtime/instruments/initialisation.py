"""Which lines gave each parameter its first values, up to the first optimizer step."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from trainlint.runtime.instruments.modules import under_transform
from trainlint.runtime.patches import Patches
from trainlint.runtime.places import user_place
from trainlint.runtime.recorder import Recorder, guarded
from trainlint.runtime.trace import Overwritten, Place

MOST_PARAMETERS = 5000
_IN_PLACE = ("normal_", "uniform_", "trunc_normal_", "zero_", "fill_")
_LOAD = "load_state_dict"


@dataclass
class _History:
    param: weakref.ref[torch.Tensor]
    pointer: int
    shape: list[int]
    # What was done, with which arguments, and the user's line.
    events: list[tuple[str, Place | None]] = field(default_factory=list)


class Initialisation:
    """Follows ``torch.nn.init``, in-place filling of a parameter's data, and loaded state."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._histories: dict[int, _History] = {}
        self._by_pointer: dict[int, int] = {}
        self._depth = 0
        self._judged = False
        recorder.before_flush.append(self._judge)

    def install(self, patches: Patches) -> None:
        """Wrap the fillers and the loading of state."""
        for name in vars(nn.init):
            if name.endswith("_") and not name.startswith("_"):
                patches.wrap(nn.init, name, self._make)
        for name in _IN_PLACE:
            patches.wrap(torch.Tensor, name, self._make)
        patches.wrap(nn.Module, _LOAD, self._make_load)

    def _make(self, original: Any) -> Any:
        def fill(*args: Any, **kwargs: Any) -> Any:
            if self._depth or self.recorder.step:
                return original(*args, **kwargs)
            self._depth += 1
            try:
                result = original(*args, **kwargs)
            finally:
                self._depth -= 1
            tensor = args[0] if args else kwargs.get("tensor")
            self._note(original.__name__, tensor, f"{args[1:]}{kwargs}")
            return result

        return fill

    def _make_load(self, original: Any) -> Any:
        def load(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            result = original(module, *args, **kwargs)
            if not self.recorder.step:
                self._loaded(module)
            return result

        return load

    @guarded
    def _note(self, name: str, tensor: Any, how: str) -> None:
        history = self._history(tensor) if isinstance(tensor, torch.Tensor) else None
        if history is not None:
            history.events.append((f"{name}{how}", user_place()))

    @guarded
    def _loaded(self, module: nn.Module) -> None:
        place = user_place()
        for param in module.parameters():
            history = self._history(param)
            if history is not None:
                history.events.append((_LOAD, place))

    def _history(self, tensor: torch.Tensor) -> _History | None:
        """The record of a parameter, given it or an alias of its data."""
        if tensor.is_meta or not tensor.numel() or under_transform():
            return None
        if not isinstance(tensor, nn.Parameter):
            known = self._histories.get(self._by_pointer.get(tensor.data_ptr(), 0))
            owner = known.param() if known is not None else None
            if owner is None or owner.data_ptr() != tensor.data_ptr():
                return None
            return known if owner.shape == tensor.shape else None
        history = self._histories.get(id(tensor))
        if history is None or history.param() is not tensor:
            if len(self._histories) >= MOST_PARAMETERS:
                return None
            history = _History(weakref.ref(tensor), tensor.data_ptr(), list(tensor.shape))
            self._histories[id(tensor)] = history
        self._by_pointer[tensor.data_ptr()] = id(tensor)
        return history

    def _judge(self) -> None:
        """Count, once training has begun, what was overwritten by whom."""
        if self._judged or not self.recorder.step:
            return
        self._judged = True
        alive = [h for h in self._histories.values() if h.param() is not None]
        loaded = [h for h in alive if any(how == _LOAD for how, _ in h.events)]
        lost = [h for h in loaded if h.events[-1][0] != _LOAD]
        found: dict[str, Overwritten] = {}
        for history in lost:
            _count(found, _LOAD, history.events[-1][1], history.shape, len(loaded))
        for history in [h for h in alive if h.events]:
            undone = _repeated(history.events)
            if undone is not None:
                _count(found, undone[0], undone[1], history.shape, 0)
        self.recorder.trace.overwritten = list(found.values())


def _repeated(events: list[tuple[str, Place | None]]) -> tuple[str, Place | None] | None:
    """What one line set, if another line that had filled the parameter before filled it again.

    A general initialisation that is followed by the special one each time it runs undoes nothing.
    """
    last = events[-1]
    first = events.index(last)
    before = events[:first]
    special = [e for e in events[first:-1] if e != last and e[1] != last[1] and e not in before]
    return (special[-1][0].split("(")[0], last[1]) if special else None


def _count(
    found: dict[str, Overwritten], what: str, place: Place | None, shape: list[int], of: int
) -> None:
    record = found.setdefault(f"{what} {place}", Overwritten(what, place, shape, 0, of))
    record.count += 1
