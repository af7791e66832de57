"""trainlint finds the training bugs that do not crash."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
_OF_THE_PROBE = ("ProbeFailedError", "assert_trains", "probe")


def __getattr__(name: str) -> Any:
    """``trainlint.probe`` and ``trainlint.assert_trains``; only whoever asks for them pays."""
    if name not in _OF_THE_PROBE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module("trainlint.runtime"), name)
