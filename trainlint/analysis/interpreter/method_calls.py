"""A method call with everything evaluated: what the handlers of methods share."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from trainlint.analysis.interpreter.machine import Machine
from trainlint.analysis.trace import EventKind
from trainlint.analysis.values import Value


@dataclass(frozen=True)
class MethodCall:
    """``receiver.name(...)`` with everything evaluated."""

    machine: Machine
    receiver: Value
    name: str
    arguments: list[Value]
    keywords: dict[str, Value]
    node: ast.Call

    @property
    def everything(self) -> tuple[Value, ...]:
        """All that the callee can reach."""
        return (self.receiver, *self.arguments, *self.keywords.values())

    def argument(self, position: int, keyword: str) -> Value | None:
        """What was passed for a parameter, by position or by keyword."""
        if position < len(self.arguments):
            return self.arguments[position]
        return self.keywords.get(keyword)

    def emit(self, kind: EventKind, target: Value | None, certain: bool = True) -> None:
        """Write an event for this call."""
        self.machine.emit(kind, self.node, target, tuple(self.arguments), certain)
