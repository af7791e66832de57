"""Prints findings: one file a format, one function a file.

``render(format_name, context)`` is all that a caller needs. Each format's ``render`` returns text
that ends with a line end (or is empty), so that it can be written to a file or a stream as it is.
A format is imported when it is asked for: starting up must not pay for the others.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from trainlint.output.context import FileError, OutputContext, SourceLines

__all__ = [
    "FORMATS",
    "FileError",
    "OutputContext",
    "SourceLines",
    "render",
    "render_statistics",
]

FORMATS = ("full", "concise", "json", "github", "gitlab", "sarif", "junit")
"""The names that ``--output-format`` takes; the first is the default."""

_MODULES = {"json": "json_format"}  # a file named json.py would only confuse


def render(format_name: str, context: OutputContext) -> str:
    """The whole output of a run in one of :data:`FORMATS`.

    Raises:
        KeyError: there is no such format.
    """
    if format_name not in FORMATS:
        raise KeyError(format_name)
    module = importlib.import_module(f"{__name__}.{_MODULES.get(format_name, format_name)}")
    format_render: Callable[[OutputContext], str] = module.render
    return format_render(context)


def render_statistics(context: OutputContext, *, as_json: bool = False) -> str:
    """What ``--statistics`` prints: how often each rule fired, the most frequent first."""
    from trainlint.output.statistics import render_json, render_text

    return render_json(context) if as_json else render_text(context)
