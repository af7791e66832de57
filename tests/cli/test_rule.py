"""``trainlint rule``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from trainlint.cli import command_line


@pytest.fixture(autouse=True)
def _demo_rules(demo_rules: None) -> None:
    """All tests here ask for the demo rules."""


def rule(*arguments: str) -> Result:
    return CliRunner().invoke(command_line, ["rule", *arguments])


@pytest.mark.parametrize("key", ["demo-faulty", "DEM101", "dem101"])
def test_text_by_name_or_code(key: str) -> None:
    result = rule(key)
    assert result.exit_code == 0
    assert result.stdout.startswith("# demo-faulty (DEM101)\n\nSeverity: error. Fix: safe.\n")
    assert "A call of faulty()." in result.stdout


def test_json() -> None:
    facts = json.loads(rule("demo-young", "--output-format", "json").stdout)
    assert facts == {
        "name": "demo-young",
        "code": "DEM301",
        "family": "demo_rules",
        "severity": "error",
        "preview": True,
        "fix": None,
        "summary": "A call of young(); not ready to run by default.",
        "documentation": "A call of young(); not ready to run by default.",
        "probe": None,
    }


def test_what_the_probe_checks_is_explained_too() -> None:
    only = rule("gradient-flow").stdout
    assert only.startswith(
        "# gradient-flow\n\nChecked in a run, by `trainlint probe`.\n\nGradients"
    )
    both = rule("zero-grad-missing").stdout
    assert both.startswith("# zero-grad-missing (TLG001)")
    assert "## In a run\n\n`trainlint probe`: Gradients are never reset" in both
    facts = json.loads(rule("gradient-flow", "--output-format", "json").stdout)
    assert (facts["code"], facts["family"]) == (None, "probe")
    assert facts["probe"] == facts["documentation"]


def test_all() -> None:
    listed = json.loads(rule("--all", "--output-format", "json").stdout)
    codes = [facts["code"] for facts in listed if facts["code"]]
    assert codes == sorted(codes)
    assert {"gradient-flow", "demo-faulty"} <= {facts["name"] for facts in listed}
    assert {"DEM101", "TLU001"} <= set(codes)
    assert "# demo-faulty (DEM101)" in rule("--all").stdout


def test_an_unknown_rule_is_2_and_the_nearest_is_named() -> None:
    result = rule("demo-fulty")
    assert result.exit_code == 2
    assert result.stderr == "Error: unknown rule 'demo-fulty'; did you mean 'demo-faulty'?\n"


@pytest.mark.parametrize("arguments", [[], ["demo-faulty", "--all"]])
def test_one_rule_or_all(arguments: list[str]) -> None:
    assert rule(*arguments).exit_code == 2
