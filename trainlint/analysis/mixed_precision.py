"""Autocast regions: the precision of each, as far as the code says it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainlint.analysis.trace import Event, EventKind, Scope, Trace, parts

HALF, BFLOAT, OFF, UNKNOWN = "float16", "bfloat16", "off", "unknown"
_DTYPES = {
    "torch.float16": HALF,
    "torch.half": HALF,
    "torch.bfloat16": BFLOAT,
    "torch.float32": OFF,
}
_ON_DEVICE = {"torch.cuda.amp.autocast": "cuda", "torch.cpu.amp.autocast": "cpu"}
_DEFAULTS = {"cuda": HALF, "cpu": BFLOAT}


def is_autocast(scope: Scope) -> bool:
    """Whether a scope is one of autocast, certain or not."""
    return scope.kind.endswith("autocast")


def precision(scope: Scope) -> str:
    """What an autocast scope computes in: one of the constants above."""
    call = scope.node
    file = scope.file if call in scope.file.index.parents else scope.file.project.holding(call)
    if scope.kind != "autocast" or file is None:
        return UNKNOWN
    if not isinstance(call, ast.Call):
        return HALF if file.qualified(call) in ("torch.cuda.amp.autocast",) else UNKNOWN
    function = file.qualified(call.func) or ""
    if not function.startswith("torch."):
        return UNKNOWN
    names = ("enabled", "dtype") if function in _ON_DEVICE else ("device_type", "dtype", "enabled")
    given = dict(zip(names, call.args, strict=False))
    given |= {item.arg: item.value for item in call.keywords if item.arg}
    enabled = given.get("enabled")
    if isinstance(enabled, ast.Constant) and enabled.value is False:
        return OFF
    if any(item.arg is None for item in call.keywords):
        return UNKNOWN
    if "dtype" in given:
        return _DTYPES.get(file.qualified(given["dtype"]) or "", UNKNOWN)
    device = given.get("device_type")
    name = _ON_DEVICE.get(function) or (device.value if isinstance(device, ast.Constant) else None)
    return _DEFAULTS.get(str(name).partition(":")[0], UNKNOWN)


def autocast_around(trace: Trace, *kinds: EventKind) -> Iterator[tuple[Event, Scope]]:
    """The events of these kinds that happen inside autocast, each with the innermost scope."""
    yield from _around(trace, kinds, None)


def _around(
    trace: Trace, kinds: tuple[EventKind, ...], inside: Scope | None
) -> Iterator[tuple[Event, Scope]]:
    for step in trace:
        if isinstance(step, Event):
            if inside is not None and step.kind in kinds:
                yield step, inside
            continue
        inner = step if isinstance(step, Scope) and is_autocast(step) else inside
        for part in parts(step):
            yield from _around(part, kinds, inner)
