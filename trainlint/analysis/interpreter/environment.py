"""Where names live while code is interpreted."""

from __future__ import annotations

from collections.abc import Callable

from trainlint.analysis.values import Value, choice


class Environment:
    """The variables of one function call, seen through to the enclosing ones."""

    def __init__(self, parent: Environment | None = None) -> None:
        self.values: dict[str, Value] = {}
        self.parent = parent
        self.shared: dict[str, Environment] = {}

    def lookup(self, name: str) -> Value | None:
        """The value that a name is bound to here or outwards."""
        current: Environment | None = self
        while current is not None:
            value = current.values.get(name) or current.own(name)
            if value is not None:
                return value
            current = current.parent
        return None

    def own(self, name: str) -> Value | None:
        """The value that this very environment binds."""
        return self.values.get(name)

    def assign(self, name: str, value: Value) -> None:
        """Bind a name here, or where ``global`` and ``nonlocal`` say."""
        self.shared.get(name, self).values[name] = value

    def outermost(self) -> Environment:
        """The module's environment."""
        current = self
        while current.parent is not None:
            current = current.parent
        return current


class ModuleEnvironment(Environment):
    """A module's names: bound by running it, or found on demand from its source."""

    def __init__(self, find: Callable[[str], Value | None]) -> None:
        super().__init__()
        self._find = find
        self._searching: set[str] = set()

    def own(self, name: str) -> Value | None:
        """A bound name, else what the module's source defines under it."""
        if name in self.values:
            return self.values[name]
        if name in self._searching:
            return None
        self._searching.add(name)
        try:
            found = self._find(name)
        finally:
            self._searching.discard(name)
        if found is not None:
            self.values[name] = found
        return found


def joined(survivors: list[dict[str, Value]]) -> dict[str, Value]:
    """The variables after paths that bind them differently."""
    if len(survivors) == 1:
        return survivors[0]
    joined = dict(survivors[0])
    for other in survivors[1:]:
        for name, value in other.items():
            held = joined.get(name)
            if held is None:
                joined[name] = value
            elif held is not value:
                joined[name] = choice([held, value])
    return joined
