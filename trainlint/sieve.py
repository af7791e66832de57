"""Tells, before anything is parsed, on which files any rule could fire at all."""

from __future__ import annotations

from trainlint.catalogue import installed_rules
from trainlint.config import RuleSet
from trainlint.outcome import FileTask
from trainlint.scout import Glance, Scout


class Sieve:
    """Looks at bytes with the scouts of the rules that were selected."""

    def __init__(self) -> None:
        self._rules = {rule.code: rule for rule in installed_rules()}
        self._scouts: dict[RuleSet, tuple[Scout, ...]] = {}

    def suspects(self, task: FileTask, data: bytes) -> bool:
        """Whether the file has to be looked at more closely: one scout is enough for that.

        A notebook always has: its code is hidden from the scouts in JSON strings.
        """
        if task.rules not in self._scouts:
            self._scouts[task.rules] = self._scouts_of(task.rules)
        scouts = self._scouts[task.rules]
        if task.path.endswith(".ipynb"):
            return bool(scouts)
        glance = Glance(data)
        return any(scout.suspects(glance) for scout in scouts)

    def _scouts_of(self, rules: RuleSet) -> tuple[Scout, ...]:
        """Each scout once, however many rules share it."""
        scouts = [self._rules[code].scout for code in rules.codes]
        return tuple({id(scout): scout for scout in scouts}.values())
