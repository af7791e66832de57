"""Tells, before anything is parsed, which rules could fire on a file at all."""

from __future__ import annotations

import dataclasses

from trainlint.catalogue import installed_rules
from trainlint.config import RuleSet
from trainlint.outcome import FileTask
from trainlint.rule import Rule
from trainlint.scout import Glance


class Sieve:
    """Looks at bytes with the scouts of the rules that were selected."""

    def __init__(self) -> None:
        self._installed = {rule.code: rule for rule in installed_rules()}
        self._selected: dict[RuleSet, list[Rule]] = {}

    def suspected(self, task: FileTask, data: bytes) -> FileTask | None:
        """The task with the rules that suspect these bytes; None if there are none.

        All rules suspect a notebook: its code is hidden from the scouts in JSON strings.
        """
        rules = self._rules_of(task.rules)
        if task.path.endswith(".ipynb"):
            return task if rules else None
        glance = Glance(data)
        suspects = [rule for rule in rules if rule.scout.suspects(glance)]
        if not suspects:
            return None
        code = glance.without_comments()
        codes = tuple(rule.code for rule in suspects if rule.scout.suspects(code))
        return dataclasses.replace(task, suspects=codes) if codes else None

    def _rules_of(self, selection: RuleSet) -> list[Rule]:
        if selection not in self._selected:
            self._selected[selection] = [self._installed[code] for code in selection.codes]
        return self._selected[selection]
