"""Pickling while functions of torch are wrapped.

A function is pickled by its name, and refused if that name now leads to something else: a model
that holds ``torch.nn.functional.relu`` could not be saved whole. While something is pickled, each
name that comes up leads to the very object that is being pickled.

Stands in for the ``pickle`` module in ``torch.save``.
"""

from __future__ import annotations

import io
import pickle
import sys
from types import FunctionType
from typing import Any

_moved: list[tuple[Any, str, Any]] = []


class Pickler(pickle.Pickler):
    """Puts a wrapped function back in its place just before it is looked up."""

    def reducer_override(self, value: Any) -> Any:
        """Change where a name leads, and leave the rest to pickle."""
        if not isinstance(value, FunctionType):
            return NotImplemented
        built_in = vars(value).get("__original_fn")
        if built_in is not None and not isinstance(built_in, FunctionType):
            return built_in.__reduce_ex__(pickle.DEFAULT_PROTOCOL)
        owner = sys.modules.get(value.__module__)
        found = getattr(owner, value.__qualname__, value)
        if found is not value:
            _moved.append((owner, value.__qualname__, found))
            setattr(owner, value.__qualname__, value)
        return NotImplemented


def put_back() -> None:
    """Let every name lead again where it led before."""
    while _moved:
        owner, name, found = _moved.pop()
        setattr(owner, name, found)


def dump(value: Any, file: Any, *args: Any, **kwargs: Any) -> None:
    """As ``pickle.dump``."""
    try:
        Pickler(file, *args, **kwargs).dump(value)
    finally:
        put_back()


def dumps(value: Any, *args: Any, **kwargs: Any) -> bytes:
    """As ``pickle.dumps``."""
    buffer = io.BytesIO()
    dump(value, buffer, *args, **kwargs)
    return buffer.getvalue()
