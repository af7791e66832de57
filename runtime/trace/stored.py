"""A trace as JSON."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from typing import Any

from trainlint.runtime.trace.run import Trace


def to_json(trace: Trace) -> str:
    """The trace as one line of JSON (NaN and infinities as Python writes them).

    A value that is none of JSON's (the symbolic size of a nested tensor) becomes text: nothing that
    slips into a trace may cost all of it.
    """
    return json.dumps(dataclasses.asdict(trace), default=str)


def from_json(text: str) -> Trace:
    """The inverse of :func:`to_json`."""
    return typing.cast("Trace", _restore(Trace, json.loads(text)))


def _restore(kind: Any, data: Any) -> Any:
    if data is None:
        return None
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        members = [a for a in typing.get_args(kind) if a is not type(None)]
        return _restore(members[0], data)
    if origin is list:
        (inner,) = typing.get_args(kind)
        return [_restore(inner, item) for item in data]
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        known = {f.name for f in dataclasses.fields(kind)}
        return kind(**{k: _restore(hints[k], v) for k, v in data.items() if k in known})  # type: ignore[operator]
    return data
