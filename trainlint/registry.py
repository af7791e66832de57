"""Finds the rules: ours by walking ``trainlint.rules``, others through entry points."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING

from trainlint.offers import ENTRY_POINT_GROUP, offers
from trainlint.rule import Rule

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class RuleConflictError(Exception):
    """Two rules claim the same code or name, or a package of rules is broken; one line says it."""


@lru_cache(maxsize=1)
def all_rules() -> tuple[Rule, ...]:
    """One instance of every rule that is installed, sorted by code.

    Raises:
        RuleConflictError: two rules share a code or a name, or another package's are broken.
    """
    classes = {cls for module in _rule_modules() for cls in _rules_in(module)}
    rules = sorted((cls() for cls in classes), key=lambda rule: rule.code)
    _refuse_conflicts(rules)
    return tuple(rules)


def _rule_modules() -> Iterator[ModuleType]:
    yield from _modules_below(importlib.import_module("trainlint.rules"))
    if any(offers()):
        from importlib.metadata import entry_points

        for entry_point in entry_points(group=ENTRY_POINT_GROUP):
            yield from _third_party(entry_point)


def _third_party(entry_point: EntryPoint) -> list[ModuleType]:
    """The modules of another package; whatever is wrong with it, the message names it."""
    try:
        return list(_modules_below(importlib.import_module(entry_point.module)))
    except Exception as error:
        raise RuleConflictError(
            f"cannot load the rules of {entry_point.value!r}: {type(error).__name__}: {error}; "
            "repair or uninstall that package"
        ) from error


def _modules_below(module: ModuleType) -> Iterator[ModuleType]:
    """The module itself and, if it is a package, all modules inside."""
    yield module
    for info in pkgutil.walk_packages(getattr(module, "__path__", ()), module.__name__ + "."):
        yield importlib.import_module(info.name)


def _rules_in(module: ModuleType) -> Iterator[type[Rule]]:
    for value in vars(module).values():
        defined_here = inspect.isclass(value) and value.__module__ == module.__name__
        if defined_here and issubclass(value, Rule) and not inspect.isabstract(value):
            yield value


def _refuse_conflicts(rules: list[Rule]) -> None:
    taken: dict[str, Rule] = {}
    for rule in rules:
        for key in (rule.code, rule.name):
            other = taken.setdefault(key, rule)
            if other is not rule:
                raise RuleConflictError(
                    f"rule {type(rule).__module__} and rule {type(other).__module__} "
                    f"both claim {key!r}: rename one"
                )
