"""Which rules run: selectors, and how those of several sources override each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainlint.catalogue import RuleFacts
from trainlint.config.errors import ConfigError, did_you_mean
from trainlint.config.options import Options

_CODE_PREFIX = re.compile(r"[A-Z]+[0-9]*")
_ALL, _WHOLE_RULE = 0, 1_000
_FAMILY = len("TLG")


@dataclass(frozen=True, slots=True)
class Selector:
    """A selector as the user wrote it, resolved.

    The higher its ``specificity``, the later it is applied: ``ALL``, then families and code
    prefixes from short to long, then single rules.
    """

    text: str
    specificity: int
    rules: tuple[RuleFacts, ...]

    @property
    def selectable(self) -> tuple[RuleFacts, ...]:
        """The rules that selecting adds: a preview rule must be asked for by name, or by ALL."""
        if self.specificity in (_ALL, _WHOLE_RULE):
            return self.rules
        return tuple(rule for rule in self.rules if not rule.preview)


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules that run on a file.

    ``codes`` are sorted. ``chosen`` are those that the user selected himself, rather than by
    default: only they may report findings of severity ``info``.
    """

    codes: tuple[str, ...]
    chosen: frozenset[str]

    @property
    def key(self) -> str:
        """Text that is equal only for equal sets."""
        return f"{','.join(self.codes)};{','.join(sorted(self.chosen))}"

    def without(self, codes: Iterable[str]) -> RuleSet:
        """The same rules but for these."""
        dropped = frozenset(codes)
        if dropped.isdisjoint(self.codes):
            return self
        kept = tuple(code for code in self.codes if code not in dropped)
        return RuleSet(kept, self.chosen - dropped)


class SelectorTable:
    """Resolves selectors against the installed rules."""

    def __init__(self, rules: Sequence[RuleFacts]) -> None:
        self.rules = tuple(rules)
        self._single = {key: rule for rule in rules for key in (rule.code, rule.name)}
        self._families = {rule.family.replace("_", "-") for rule in rules}

    def resolve(self, text: str, origin: str) -> Selector:
        """The rules that ``text`` names: ALL, a code, a prefix of codes, a name or a family.

        Raises:
            ConfigError: no installed rule is meant; the message offers the nearest.
        """
        if text == "ALL":
            return Selector(text, _ALL, self.rules)
        if text in self._single:
            return Selector(text, _WHOLE_RULE, (self._single[text],))
        family = text.replace("_", "-")
        if family in self._families:
            return Selector(text, _FAMILY, self._matching(family))
        if _CODE_PREFIX.fullmatch(text):
            rules = tuple(rule for rule in self.rules if rule.code.startswith(text))
            if rules:
                return Selector(text, len(text), rules)
        known = [*self._single, *sorted(self._families), "ALL"]
        raise ConfigError(f"{origin}: unknown rule {text!r}{did_you_mean(text, known)}")

    def _matching(self, family: str) -> tuple[RuleFacts, ...]:
        return tuple(rule for rule in self.rules if rule.family.replace("_", "-") == family)

    def rule_set(self, layers: Iterable[Options]) -> RuleSet:
        """What is selected after all layers, the configuration file before the command line.

        Within a layer the more specific selector wins, and ``ignore`` wins over ``select`` at
        equal specificity. A layer with ``select`` starts afresh; one without changes what the
        layers before it selected. The ``ignore`` of a layer without ``select`` also holds
        against the ``select`` of the next.

        Raises:
            ConfigError: a selector names no installed rule.
        """
        chosen: dict[str, bool] = {rule.code: False for rule in self.rules if rule.runs_by_default}
        carried: list[Selector] = []
        for layer in layers:
            changes = self._changes(layer, carried)
            if layer.select is not None:
                chosen = {}
                carried = []
            else:
                carried = self._resolve_all(layer.ignore, layer.origin)
            for code, selected in changes.items():
                chosen.pop(code, None)
                if selected:
                    chosen[code] = True
        return RuleSet(
            tuple(sorted(chosen)), frozenset(code for code, asked in chosen.items() if asked)
        )

    def _changes(self, layer: Options, carried: list[Selector]) -> dict[str, bool]:
        """Rule codes to whether this layer selects or ignores them."""
        selected = self._resolve_all((*(layer.select or ()), *layer.extend_select), layer.origin)
        ignored = carried + self._resolve_all(layer.ignore, layer.origin)
        steps = [(item.specificity, 0, item.selectable, True) for item in selected]
        steps += [(item.specificity, 1, item.rules, False) for item in ignored]
        changes: dict[str, bool] = {}
        for _, _, rules, select in sorted(steps, key=lambda step: step[:2]):
            changes.update((rule.code, select) for rule in rules)
        return changes

    def _resolve_all(self, texts: Iterable[str], origin: str) -> list[Selector]:
        return [self.resolve(text, origin) for text in texts]
