"""Averages of the weights (EMA, SWA) that are alive, and whether a checkpoint holds them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from trainlint.runtime.instruments.namespaces import user_frames, variables

NAME = re.compile(r"(^|_)(ema|swa|shadow|averaged?)(_|$)", re.IGNORECASE)


def live_averages() -> list[Any]:
    """The values behind the script's variables that are averages of weights by their names."""
    found: dict[int, Any] = {}
    for frame in user_frames():
        for name, value in variables(frame):
            if NAME.search(name.rsplit(".", 1)[-1]) and _tensors(value):
                found[id(value)] = value
    return list(found.values())


def holds_averages(saved: list[Mapping[str, Any]], averages: list[Any]) -> bool:
    """Whether a saved mapping is named as an average, or shares memory with one."""
    keys = [str(key) for mapping in saved for key in mapping]
    if any(NAME.search(key) or key == "n_averaged" for key in keys):
        return True
    pointers = {t.data_ptr() for average in averages for t in _tensors(average)}
    return any(
        isinstance(value, torch.Tensor) and value.data_ptr() in pointers
        for mapping in saved
        for value in mapping.values()
    )


def _tensors(value: Any) -> list[torch.Tensor]:
    """The weights that an average holds, whichever form it has."""
    return [t for t in _parts(value) if isinstance(t, torch.Tensor) and t.numel()]


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, nn.Module):
        yield from value.parameters()
    elif isinstance(value, Mapping):
        yield from value.values()
    elif hasattr(value, "shadow_params"):
        yield from value.shadow_params
    elif isinstance(getattr(value, "shadow", None), Mapping):
        yield from value.shadow.values()
    elif isinstance(getattr(value, "module", None), nn.Module):
        yield from value.module.parameters()
