"""Wrapped functions of torch itself stay usable in ``torch.jit.script``."""

from __future__ import annotations

import torch
from torch.jit import _builtins

WRAPPED = ("relu", "tanh", "softmax", "log_softmax")


def keep_scriptable() -> None:
    """Tell the compiler that the wrappers stand for the built-in operators.

    It looks functions up by identity, in a table that is filled at first use by going through the
    names in ``torch``; only a table that is older than the wrappers needs to be told.
    """
    if _builtins._builtin_table is None:
        return
    for name in WRAPPED:
        _builtins._register_builtin(getattr(torch, name), f"aten::{name}")
