"""The script's variables at the end: copies that are not copies, and graphs that were kept."""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

import torch
from torch import nn

from trainlint.runtime.instruments.modules import Modules
from trainlint.runtime.places import is_user_file
from trainlint.runtime.recorder import Recorder
from trainlint.runtime.trace import Alias, Place, RetainedGraph

# Names by which a script promises that the value is a snapshot of its own.
PROMISES = re.compile(
    r"(^|_)(best|ema|snapshot|backup|initial|init|prev|previous|old|teacher|averaged|saved|"
    r"checkpoint|ckpt|shadow)(_|$)|(^|_)target_?(net|network|model|q)", re.IGNORECASE
)  # fmt: skip
MOST_ITEMS = 200

Scope = Mapping[str, Any]


class Namespaces:
    """Looks through the variables of the user's own frames."""

    def __init__(self, recorder: Recorder, modules: Modules) -> None:
        self.recorder = recorder
        self.modules = modules

    def look(self) -> None:
        """Fill aliases and retained graphs from the frames that are active now."""
        live = self._live_pointers()
        seen: set[tuple[str, int]] = set()
        for frame in user_frames():
            for scope in _scopes(frame):
                for name, value in _named(scope):
                    if (name, id(value)) not in seen:
                        seen.add((name, id(value)))
                        self._look_at(frame, scope, name, value, live)

    def _live_pointers(self) -> dict[int, str]:
        found = {}
        for root in self.modules.roots.values():
            for param in root.parameters():
                if param.requires_grad and param.numel():
                    found[param.data_ptr()] = type(root).__name__
        return found

    def _look_at(
        self, frame: FrameType, scope: Scope, name: str, value: Any, live: dict[int, str]
    ) -> None:
        short = name.rsplit(".", 1)[-1]
        if isinstance(value, Mapping) and PROMISES.search(short):
            tensors = [v for v in value.values() if isinstance(v, torch.Tensor) and v.numel()]
            shared = [live[t.data_ptr()] for t in tensors if t.data_ptr() in live]
            if shared:
                self._alias(frame, name, "state", shared[0])
        elif isinstance(value, nn.Module) and PROMISES.search(short):
            other = _other_name(scope, value) if self._is_trained(value) else ""
            if other:
                self._alias(frame, name, "module", other)
        elif isinstance(value, torch.Tensor) and value.grad_fn is not None:
            if value.numel() == 1:
                self._graph(frame, name, 1)
        elif isinstance(value, list) and len(value) > 2:
            held = [v for v in value[:MOST_ITEMS] if isinstance(v, torch.Tensor) and v.grad_fn]
            if len(held) == min(len(value), MOST_ITEMS):
                self._graph(frame, name, len(value))

    def _is_trained(self, module: nn.Module) -> bool:
        """Whether backward reaches it; a real average or target network may have other names."""
        known = (self.modules.book.look_up(p) for p in module.parameters())
        return any(facts is not None and facts.backwards for facts in known)

    def _alias(self, frame: FrameType, name: str, kind: str, of: str) -> None:
        place = _assignment(frame, name)
        self.recorder.trace.aliases.append(Alias(name, kind, of, place))

    def _graph(self, frame: FrameType, name: str, size: int) -> None:
        place = _growth(frame, name)
        if place is not None:
            self.recorder.trace.retained.append(RetainedGraph(name, size, place))


def user_frames() -> Iterator[FrameType]:
    """The active frames of the user's own source, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def variables(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """The names and values that a frame sees, and the attributes of its own objects."""
    for scope in _scopes(frame):
        yield from _named(scope)


def _scopes(frame: FrameType) -> list[Scope]:
    """Local and global names: what a function calls ``model`` need not be the global one."""
    top = frame.f_locals is frame.f_globals
    return [frame.f_globals] if top else [frame.f_locals, frame.f_globals]


def _other_name(scope: Scope, value: nn.Module) -> str:
    """A name in the same scope that promises no copy, and means the same object."""
    for other, candidate in _named(scope):
        if candidate is value and not PROMISES.search(other.rsplit(".", 1)[-1]):
            return other
    return ""


def _named(scope: Scope) -> Iterator[tuple[str, Any]]:
    for name, value in list(scope.items()):
        if name.startswith("__"):
            continue
        yield name, value
        if type(value).__module__.split(".")[0] in ("torch", "builtins", "numpy"):
            continue
        inner = getattr(value, "__dict__", None)
        if isinstance(inner, dict) and not isinstance(value, (type, nn.Module)):
            yield from ((f"{name}.{key}", item) for key, item in list(inner.items())[:MOST_ITEMS])


def _statements(frame: FrameType) -> Iterator[ast.AST]:
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    try:
        yield from ast.walk(ast.parse(source))
    except (SyntaxError, ValueError):
        return


def _at(frame: FrameType, node: Any) -> Place:
    text = linecache.getline(frame.f_code.co_filename, node.lineno, frame.f_globals).strip()
    return Place(frame.f_code.co_filename, node.lineno, text)


def _assignment(frame: FrameType, name: str) -> Place | None:
    short = name.rsplit(".", 1)[-1]
    last = None
    for node in _statements(frame):
        if _assigns(node, short) and not isinstance(node.value, ast.Constant):  # type: ignore[attr-defined]
            last = node
    return None if last is None else _at(frame, last)


def _names(target: ast.AST, short: str) -> bool:
    return (isinstance(target, ast.Name) and target.id == short) or (
        isinstance(target, ast.Attribute) and target.attr == short
    )


def _growth(frame: FrameType, name: str) -> Place | None:
    """The line that adds to a variable: ``name += ...`` or ``name.append(...)``."""
    short = name.rsplit(".", 1)[-1]
    for node in _statements(frame):
        if isinstance(node, ast.AugAssign) and _names(node.target, short):
            return _at(frame, node)
        if isinstance(node, ast.Call) and _appends(node.func, short):
            return _at(frame, node)
        if isinstance(node, ast.Assign) and _assigns(node, short) and _adds(node.value, short):
            return _at(frame, node)
    return None


def _assigns(node: ast.AST, short: str) -> bool:
    return isinstance(node, ast.Assign) and any(_names(t, short) for t in node.targets)


def _appends(function: ast.AST, short: str) -> bool:
    method = isinstance(function, ast.Attribute) and function.attr == "append"
    return method and _names(function.value, short)  # type: ignore[attr-defined]


def _adds(value: ast.AST, short: str) -> bool:
    return isinstance(value, ast.BinOp) and _names(value.left, short)
