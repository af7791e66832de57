"""Replaced attributes, and putting them back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_MISSING = object()
_LET_JIT_SEE = {"__script_if_tracing_wrapper": True}


class Patches:
    """A stack of replaced attributes and other things to undo, undone in reverse order."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], Any]] = []

    def replace(self, owner: Any, name: str, new: Any) -> None:
        """Set ``owner.name`` to ``new`` until :meth:`undo`."""
        old = vars(owner).get(name, _MISSING)
        setattr(owner, name, new)
        if old is _MISSING:
            self.later(lambda: delattr(owner, name))
        else:
            self.later(lambda: setattr(owner, name, old))

    def wrap(self, owner: Any, name: str, make: Callable[[Any], Callable[..., Any]]) -> None:
        """Replace a function by ``make(original)``; a missing one is left alone.

        The two script attributes let ``torch.jit.script`` compile the original.
        """
        original = getattr(owner, name, None)
        if original is None:
            return
        wrapper: Any = functools.wraps(original)(make(original))
        vars(wrapper).update(_LET_JIT_SEE, __original_fn=original)
        self.replace(owner, name, wrapper)

    def later(self, action: Callable[[], Any]) -> None:
        """Run ``action`` when the patches are undone."""
        self._undo.append(action)

    def undo(self) -> None:
        """Put everything back."""
        while self._undo:
            self._undo.pop()()
