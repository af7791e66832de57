"""Which values of a checkpoint are states of random number generators."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch

NAMED = re.compile(r"rng|random|generator_state", re.IGNORECASE)
# torch.get_rng_state() has 5056 bytes (5048 on old versions), torch.cuda.get_rng_state() 16 (816).
TORCH_BYTES = (16, 816, 5048, 5056)
# The Mersenne twister of Python and NumPy has 624 words; Python adds its position.
TWISTER_WORDS = (624, 625)
_PLAIN = (bool, int, float, str, bytes, type(None))
_DEPTH = 2


def is_random_state(value: Any, name: str = "") -> bool:
    """Whether a value is a generator's state, told by its shape, or by its name where that is new.

    A seed is none: it says where the random numbers began, not where they are.
    """
    if _has_shape_of_state(value, _DEPTH):
        return True
    is_empty = isinstance(value, (Mapping, list, tuple)) and not value
    return not isinstance(value, _PLAIN) and not is_empty and NAMED.search(name) is not None


def _has_shape_of_state(value: Any, depth: int) -> bool:
    if isinstance(value, torch.Tensor):
        is_bytes = value.dtype == torch.uint8 and value.dim() == 1
        return is_bytes and value.numel() in TORCH_BYTES
    if isinstance(value, Mapping):
        return "bit_generator" in value
    if not isinstance(value, (list, tuple)) or len(value) > 8:
        return False
    if any(_is_twister(item) for item in value):
        return True
    return bool(depth) and any(_has_shape_of_state(item, depth - 1) for item in value)


def _is_twister(value: Any) -> bool:
    words = getattr(value, "size", None) if not isinstance(value, tuple) else len(value)
    return words in TWISTER_WORDS if isinstance(words, int) else False
