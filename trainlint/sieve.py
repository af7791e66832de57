"""Tells, before anything is parsed, on which files any rule could fire at all."""

from __future__ import annotations

from trainlint import engine
from trainlint.catalogue import installed_rules
from trainlint.config import RuleSet
from trainlint.outcome import FileTask
from trainlint.rule import Rule


class Sieve:
    """Looks at bytes with the scouts of the rules that were selected."""

    def __init__(self) -> None:
        self._rules = {rule.code: rule for rule in installed_rules()}
        self._selected: dict[RuleSet, list[Rule]] = {}

    def suspects(self, task: FileTask, data: bytes) -> bool:
        """Whether the file has to be looked at more closely.

        A notebook always has: its code is hidden from the scouts in JSON strings.
        """
        if task.rules not in self._selected:
            self._selected[task.rules] = [self._rules[code] for code in task.rules.codes]
        rules = self._selected[task.rules]
        return bool(rules) and (task.path.endswith(".ipynb") or bool(engine.sieve(data, rules)))
