"""Which rules the selectors of a configuration file and of the command line leave."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainlint.catalogue import RuleFacts
from trainlint.config import ConfigError, Options, SelectorTable
from trainlint.finding import Severity

DEFAULT = ("TLC001", "TLG001", "TLG002")
EVERYTHING = ("TLC001", "TLC002", "TLG001", "TLG002", "TLG101")


def selected(table: SelectorTable, *layers: dict[str, Any]) -> tuple[str, ...]:
    return table.rule_set(Options("a test", **layer) for layer in layers).codes


def test_by_default_errors_and_warnings_that_are_not_in_preview(table: SelectorTable) -> None:
    assert selected(table) == DEFAULT


@pytest.mark.parametrize(
    ("selector", "codes"),
    [
        ("ALL", EVERYTHING),
        ("TLG", ("TLG001", "TLG002")),
        ("TLG0", ("TLG001", "TLG002")),
        ("TLG1", ()),
        ("TLG101", ("TLG101",)),
        ("young-gradient", ("TLG101",)),
        ("gradients", ("TLG001", "TLG002")),
        ("checkpoints_and_weights", ("TLC001", "TLC002")),
        ("checkpoints-and-weights", ("TLC001", "TLC002")),
        ("TL", ("TLC001", "TLC002", "TLG001", "TLG002")),
    ],
)
def test_select(table: SelectorTable, selector: str, codes: tuple[str, ...]) -> None:
    assert selected(table, {"select": (selector,)}) == codes


@pytest.mark.parametrize(
    ("layer", "codes"),
    [
        ({"select": ("ALL",), "ignore": ("TLG",)}, ("TLC001", "TLC002")),
        ({"select": ("TLG001",), "ignore": ("ALL",)}, ("TLG001",)),
        ({"select": ("TLG001",), "ignore": ("TLG",)}, ("TLG001",)),
        ({"select": ("TLG",), "ignore": ("gradients",)}, ()),
        ({"select": ("TLG001",), "ignore": ("zero-grad-missing",)}, ()),
        ({"extend_select": ("slow-save",)}, ("TLC001", "TLC002", "TLG001", "TLG002")),
        ({"ignore": ("TLG",)}, ("TLC001",)),
        ({"ignore": ("ALL",)}, ()),
        ({"ignore": ("ALL",), "extend_select": ("TLG001",)}, ("TLG001",)),
    ],
)
def test_within_a_layer_the_more_specific_wins_then_ignore(
    table: SelectorTable, layer: dict[str, Any], codes: tuple[str, ...]
) -> None:
    assert selected(table, layer) == codes


@pytest.mark.parametrize(
    ("file", "command_line", "codes"),
    [
        ({"select": ("TLC",)}, {"select": ("TLG001",)}, ("TLG001",)),
        ({"select": ("TLC",)}, {"extend_select": ("TLG001",)}, ("TLC001", "TLC002", "TLG001")),
        ({"select": ("TLC",)}, {"ignore": ("TLC002",)}, ("TLC001",)),
        ({"select": ("TLC",), "ignore": ("TLG",)}, {"select": ("TLG",)}, ("TLG001", "TLG002")),
        ({"ignore": ("TLG001",)}, {"select": ("TLG",)}, ("TLG002",)),
        ({"ignore": ("TLG001",)}, {"select": ("TLG001",)}, ()),
        (
            {"ignore": ("TLG001",)},
            {"extend_select": ("slow-save",)},
            ("TLC001", "TLC002", "TLG002"),
        ),
    ],
)
def test_the_command_line_overrides_the_file(
    table: SelectorTable,
    file: dict[str, Any],
    command_line: dict[str, Any],
    codes: tuple[str, ...],
) -> None:
    assert selected(table, file, command_line) == codes


def test_only_what_the_user_selects_may_report_hints(table: SelectorTable) -> None:
    rule_set = table.rule_set([Options("a test", extend_select=("TLG001",))])
    assert rule_set.codes == DEFAULT
    assert rule_set.chosen == {"TLG001"}


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("zero-grad-mising", "zero-grad-missing"),
        ("Zero-Grad-Missing", "zero-grad-missing"),
        ("gradient", "gradients"),
        ("all", "ALL"),
        ("TLG03", "TLG001"),
    ],
)
def test_an_unknown_selector_names_the_nearest(
    table: SelectorTable, text: str, suggestion: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        selected(table, {"select": (text,)})
    assert str(raised.value).startswith(f"a test: unknown rule {text!r}; did you mean '")
    if not text.startswith("TLG"):
        assert suggestion in str(raised.value)


def test_an_unknown_selector_that_is_like_nothing(table: SelectorTable) -> None:
    with pytest.raises(ConfigError, match=r"^a test: unknown rule '!!!'$"):
        selected(table, {"ignore": ("!!!",)})


_RULES = tuple(
    RuleFacts(
        f"TL{family}{number:03}",
        f"rule-{family.lower()}-{number}",
        family.lower(),
        severity,
        preview,
    )
    for family in "GC"
    for number, severity, preview in [
        (1, Severity.ERROR, False),
        (2, Severity.INFO, False),
        (11, Severity.WARNING, True),
    ]
)
_SELECTORS = st.lists(
    st.sampled_from(
        ["ALL", "TL", "TLG", "TLC", "TLG0", "g", "c"]
        + [rule.code for rule in _RULES]
        + [rule.name for rule in _RULES]
    ),
    max_size=4,
).map(tuple)


@given(_SELECTORS, _SELECTORS)
def test_a_rule_that_is_ignored_by_name_never_runs(
    select: tuple[str, ...], ignore: tuple[str, ...]
) -> None:
    codes = selected(SelectorTable(_RULES), {"select": select, "ignore": ignore})
    named = {rule.code for rule in _RULES if rule.code in ignore or rule.name in ignore}
    assert named.isdisjoint(codes)


@given(_SELECTORS, _SELECTORS)
def test_what_runs_was_selected(select: tuple[str, ...], ignore: tuple[str, ...]) -> None:
    table = SelectorTable(_RULES)
    codes = selected(table, {"select": select, "ignore": ignore})
    meant = {rule.code for text in select for rule in table.resolve(text, "").rules}
    assert meant.issuperset(codes)
    assert list(codes) == sorted(codes)


@given(_SELECTORS)
def test_the_order_of_selectors_does_not_matter(select: tuple[str, ...]) -> None:
    table = SelectorTable(_RULES)
    assert selected(table, {"select": select}) == selected(table, {"select": select[::-1]})
