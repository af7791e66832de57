"""What the script saves, compared with the live objects at that moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from trainlint.runtime.instruments.averages import holds_averages, live_averages
from trainlint.runtime.instruments.modules import Modules
from trainlint.runtime.instruments.optimizers import Optimizers
from trainlint.runtime.instruments.protocol import CallOrder
from trainlint.runtime.instruments.random_states import is_random_state
from trainlint.runtime.patches import Patches
from trainlint.runtime.places import user_place
from trainlint.runtime.recorder import Recorder, guarded
from trainlint.runtime.trace import SavedState

MOST_SAVES = 50
# A dictionary is taken for a model's state when it has at least this share of the model's keys.
SAME_MODEL = 0.5
# Longer lists hold data, or a history.
MOST_ITEMS = 16
# What a checkpoint can hold beside the model, as the report calls it.
AVERAGE = "the averaged weights (EMA)"
RANDOM_STATE = "random number generators"
_PREFIXES = ("module.", "_orig_mod.", "model.")


def _bare(key: str) -> str:
    for prefix in _PREFIXES:
        key = key.removeprefix(prefix)
    return key


def _mappings(value: Any, depth: int = 3) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
    if depth:
        for item in _items(value):
            yield from _mappings(item, depth - 1)


def _items(value: Any) -> list[Any]:
    """What a mapping or a short list holds: Lightning saves its optimizers' states as a list."""
    if isinstance(value, Mapping):
        return list(value.values())
    is_short = isinstance(value, (list, tuple)) and len(value) <= MOST_ITEMS
    return list(value) if is_short else []


def _entries(value: Any) -> list[str]:
    return [str(key) for key in value] if isinstance(value, Mapping) and len(value) < 50 else []


def _kinds(value: Any) -> list[str]:
    """Which training objects a checkpoint holds, told by the shape of their state."""
    found = set()
    for mapping in _mappings(value):
        keys = {str(key) for key in mapping}
        if {"state", "param_groups"} <= keys:
            found.add("optimizer")
        if "last_epoch" in keys and ("_step_count" in keys or "base_lrs" in keys):
            found.add("scheduler")
        if {"scale", "growth_factor"} <= keys:
            found.add("scaler")
        if any(is_random_state(item, str(key)) for key, item in mapping.items()):
            found.add(RANDOM_STATE)
        if keys & {"epoch", "step", "iter", "iter_num", "global_step", "iteration"}:
            found.add("position")
    return sorted(found)


class Checkpoints:
    """Compares at ``torch.save``; where the bytes go is the sandbox's matter."""

    def __init__(
        self, recorder: Recorder, modules: Modules, optimizers: Optimizers, protocol: CallOrder
    ) -> None:
        self.recorder = recorder
        self.modules = modules
        self.optimizers = optimizers
        self.protocol = protocol

    def install(self, patches: Patches) -> None:
        """Wrap saving and loading."""
        patches.wrap(torch, "save", self._make_save)
        patches.wrap(nn.Module, "load_state_dict", self._make_load)

    def _make_save(self, original: Any) -> Any:
        def save(value: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            if self.recorder.active():
                self._saved(value, str(target))
            return original(value, target, *args, **kwargs)

        return save

    def _make_load(self, original: Any) -> Any:
        def load(module: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
            if self.recorder.active() and self.recorder.step == 0:
                self.recorder.trace.loaded_weights = True
            return original(module, state, *args, **kwargs)

        return load

    @guarded
    def _saved(self, value: Any, path: str) -> None:
        saves = self.recorder.trace.saves
        if len(saves) >= MOST_SAVES or self.recorder.step == 0:
            return
        record = SavedState(user_place(), path, self.recorder.step, entries=_entries(value))
        record.has = _kinds(value)
        record.live = self._live()
        averages = live_averages()
        if averages:
            record.live.append(AVERAGE)
            if holds_averages(list(_mappings(value)), averages):
                record.has.append(AVERAGE)
        self._compare(value, record)
        if record.model or record.has:
            saves.append(record)

    def _live(self) -> list[str]:
        found = ["optimizer"] if self.optimizers.all() else []
        if any(s() is not None for s in self.protocol.schedulers):
            found.append("scheduler")
        if any((s := r()) is not None and s.is_enabled() for r in self.protocol.scalers):
            found.append("scaler")
        return [*found, RANDOM_STATE]

    def _compare(self, value: Any, record: SavedState) -> None:
        best: tuple[float, Mapping[str, Any], nn.Module] | None = None
        for root in list(self.modules.roots.values()):
            own = {_bare(key) for key in root.state_dict()}
            for mapping in _mappings(value):
                saved = {_bare(str(k)) for k, v in mapping.items() if isinstance(v, torch.Tensor)}
                share = len(own & saved) / max(1, len(own))
                if share >= SAME_MODEL and (best is None or share > best[0]):
                    best = (share, mapping, root)
        if best is not None:
            self._compare_state(best[1], best[2], record)

    def _compare_state(self, saved: Mapping[str, Any], root: nn.Module, record: SavedState) -> None:
        held = {_bare(str(key)): item for key, item in saved.items()}
        trained = {_bare(name) for name, p in root.named_parameters() if p.requires_grad}
        record.model = type(root).__name__
        for key, live in root.state_dict().items():
            name = _bare(key)
            if name not in held:
                record.missing.append(name)
            elif name in trained and isinstance(held[name], torch.Tensor):
                record.keys += 1
                if _same(held[name], live):
                    record.equal += 1
                else:
                    record.different.append(name)


def _same(saved: torch.Tensor, live: torch.Tensor) -> bool:
    if saved.shape != live.shape:
        return False
    copy = saved.detach().to(live.device)
    if copy.dtype != live.dtype:
        return torch.allclose(copy.float(), live.float(), rtol=1e-2, atol=1e-2)
    return bool(torch.equal(copy, live)) or bool(((copy != copy) & (live != live)).any())
