"""Replaced attributes, and putting them back."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
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

    def when_imported(self, name: str, action: Callable[[Any], None]) -> None:
        """Run ``action(module)`` now, or as soon as somebody imports the module.

        It runs before the importer sees the module, so that ``from module import name`` gets what
        the action has put there.
        """
        if name in sys.modules:
            action(sys.modules[name])
            return
        finder = _OnImport(name, action)
        sys.meta_path.insert(0, finder)
        self.later(lambda: sys.meta_path.remove(finder) if finder in sys.meta_path else None)

    def later(self, action: Callable[[], Any]) -> None:
        """Run ``action`` when the patches are undone."""
        self._undo.append(action)

    def undo(self) -> None:
        """Put everything back."""
        while self._undo:
            self._undo.pop()()


class _OnImport(MetaPathFinder):
    """Leaves finding a module to the others, and acts when it has been executed."""

    def __init__(self, name: str, action: Callable[[Any], None]) -> None:
        self._name = name
        self._action = action

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """The spec as the others find it, with a loader that acts afterwards."""
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        loader: Any = spec.loader if spec is not None else None
        if loader is None or not hasattr(loader, "exec_module"):
            return spec
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            self._action(module)

        loader.exec_module = exec_module
        return spec
