"""The installed rules as plain facts, so that most of a run needs no rule imported."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainlint.finding import Severity

if TYPE_CHECKING:
    from trainlint.rule import Rule


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """What selecting and naming a rule needs to know of it."""

    code: str
    name: str
    family: str
    severity: Severity
    preview: bool

    @property
    def runs_by_default(self) -> bool:
        """Whether the rule runs when the user selects nothing."""
        return self.severity is not Severity.INFO and not self.preview


class RuleLoadError(Exception):
    """The installed rules cannot be used together; the message is one line for the user."""


def installed_rules() -> tuple[Rule, ...]:
    """Every installed rule, sorted by code; imports all of them.

    Raises:
        RuleLoadError: two rules share a code or a name.
    """
    from trainlint.registry import RuleConflictError, all_rules

    try:
        return all_rules()
    except RuleConflictError as error:
        raise RuleLoadError(str(error)) from error


def facts_of(rules: Iterable[Rule]) -> tuple[RuleFacts, ...]:
    """The facts of these rules, in their order."""
    return tuple(
        RuleFacts(rule.code, rule.name, rule.family, rule.severity, rule.preview) for rule in rules
    )


def foreign_files(rules: Iterable[Rule]) -> list[str]:
    """The Python files of the packages that other distributions' rules are defined in, sorted."""
    tops = {type(rule).__module__.partition(".")[0] for rule in rules} - {"trainlint"}
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] in tops]
    files = {getattr(module, "__file__", None) for module in modules}
    return sorted(file for file in files if file is not None)
