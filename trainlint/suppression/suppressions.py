"""The suppressions of one file: which findings they hide, and which hide nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

from trainlint.finding import Applicability, Finding, Fix, Severity
from trainlint.rule import Rule
from trainlint.suppression.comments import find_comments
from trainlint.suppression.directives import (
    UNUSED_SUPPRESSION,
    Directive,
    Kind,
    directives_of,
    looks_of,
)
from trainlint.suppression.unused import UnusedSuppression

_OUR_CODE = re.compile(r"TL[A-Z]\d+")


class Suppressions:
    """The suppression comments of one file (for a notebook: of ``Notebook.text``).

    ``rules``: all rules that are installed, selected or not. A text in which nothing looks like
    a suppression of ours costs one search; others are tokenized when the first question is asked.
    """

    def __init__(self, text: str, rules: Sequence[Rule]) -> None:
        self._text = text
        self._rules = rules

    @cached_property
    def directives(self) -> list[Directive]:
        """Every suppression of the file."""
        return directives_of(find_comments(self._text)) if self else []

    @cached_property
    def _looks(self) -> list[tuple[Kind, tuple[str, ...]]]:
        return [
            (kind, entries)
            for kind, entries in looks_of(self._text)
            if kind is not Kind.NOQA or not entries or any(map(self._is_our_code, entries))
        ]

    def _is_our_code(self, entry: str) -> bool:
        code = entry.upper()
        known = any(rule.code.startswith(code) for rule in self._rules)
        return known or _OUR_CODE.fullmatch(code) is not None

    def __bool__(self) -> bool:
        """Whether the text looks as if it held a suppression of ours (in a string counts too)."""
        return bool(self._looks)

    def covers(self, finding: Finding) -> bool:
        """Whether a comment says to hide this finding (its lines are lines of the text)."""
        return any(directive.covers(finding) for directive in self.directives)

    def unused(
        self, path: str, suppressed: Iterable[Finding], active: Collection[str]
    ) -> list[UnusedSuppression]:
        """Suppressions that hide nothing and names that mean nothing, each with its finding.

        Empty unless ``unused-suppression`` is active. A name counts as unused only when its rule
        is active; a comment without names only when everything that runs by default is, and a
        bare ``noqa`` never, because other linters read it.

        Args:
            path: the path that the findings carry.
            suppressed: the findings of this file that ``covers`` was true for.
            active: names of the rules that were to run on this file; a rule that had nothing to
                do there (the sieve skipped it) did run.
        """
        judge = self._rule_named(UNUSED_SUPPRESSION)
        if judge is None or UNUSED_SUPPRESSION not in active:
            return []
        if all(kind is Kind.NOQA and not entries for kind, entries in self._looks):
            return []
        hidden = list(suppressed)
        found = []
        for directive in self.directives:
            unused, unknown = self._judge(directive, hidden, active)
            if unused is not None:
                found.append(_unused_finding(path, directive, unused, judge))
            for entry in unknown:
                found.append(_unknown_finding(path, directive, entry, judge, self._rules))
        return [each for each in found if not self.covers(each.finding)]

    def _judge(
        self, directive: Directive, hidden: list[Finding], active: Collection[str]
    ) -> tuple[tuple[str, ...] | None, list[str]]:
        """The unused entries (none at all: the whole directive; None: in use), the unknown."""
        reached = [finding for finding in hidden if directive.reaches(finding)]
        if not directive.entries:
            judged = directive.kind is not Kind.NOQA and self._default_rules <= set(active)
            return (() if judged and not any(map(directive.names, reached)) else None), []
        unused, unknown = [], []
        for entry in directive.entries:
            meant = self._rules_meant(directive, entry)
            if not meant:
                foreign = directive.kind is Kind.NOQA and not self._is_our_code(entry)
                unknown += [] if foreign else [entry]
            elif all(rule.name in active for rule in meant) and not any(
                directive.entry_names(entry, each.rule, each.code) for each in reached
            ):
                unused += [entry] if meant[0].name != UNUSED_SUPPRESSION else []
        return (tuple(unused) or None), unknown

    @cached_property
    def _default_rules(self) -> set[str]:
        return {
            rule.name
            for rule in self._rules
            if not rule.preview and rule.severity.at_least(Severity.WARNING)
        }

    def _rules_meant(self, directive: Directive, entry: str) -> list[Rule]:
        return [rule for rule in self._rules if directive.entry_names(entry, rule.name, rule.code)]

    def _rule_named(self, name: str) -> Rule | None:
        return next((rule for rule in self._rules if rule.name == name), None)


def _unused_finding(
    path: str, directive: Directive, unused: tuple[str, ...], judge: Rule
) -> UnusedSuppression:
    names = ", ".join(f"`{entry}`" for entry in unused)
    if unused:
        message = f"{names} suppressed here, but not reported"
    else:
        message = "nothing is reported here, so there is nothing to suppress"
    whole = len(unused) == len(directive.entries)
    title = "remove the comment" if whole else f"remove {names}"
    fix = Fix(Applicability.SAFE, title)
    return UnusedSuppression(
        _finding(path, directive, judge, message, judge.help, fix), directive, unused
    )


def _unknown_finding(
    path: str, directive: Directive, entry: str, judge: Rule, rules: Sequence[Rule]
) -> UnusedSuppression:
    from trainlint.config.errors import nearest

    right = nearest(entry, [spelling for rule in rules for spelling in (rule.name, rule.code)])
    guess = f"; did you mean `{right}`?" if right else ""
    message = f"`{entry}` is not a rule, so this suppresses nothing{guess}"
    help_text = f"write `{right}`" if right else "see `trainlint rule --all` for the names"
    return UnusedSuppression(
        _finding(path, directive, judge, message, help_text, None), directive, ()
    )


def _finding(
    path: str, directive: Directive, judge: Rule, message: str, help_text: str, fix: Fix | None
) -> Finding:
    return Finding(
        path,
        line=directive.line,
        column=directive.column + 1,
        end_line=directive.line,
        end_column=directive.written_end + 1,
        code=judge.code,
        rule=judge.name,
        severity=judge.severity,
        message=message,
        help=help_text,
        fix=fix,
        statement_line=directive.line,
        statement_end_line=directive.line,
    )
