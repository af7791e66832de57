"""``trainlint rule``: prints the documentation of rules, and of what the probe checks."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from trainlint.catalogue import RuleLoadError, installed_rules
from trainlint.cli.faults import UsageFault
from trainlint.cli.terminal import wants_colour
from trainlint.config.errors import did_you_mean
from trainlint.rule import Rule


@dataclass(frozen=True)
class _Check:
    """What the probe looks for in a run."""

    name: str
    documentation: str


@click.command(short_help="Explain a rule.")
@click.argument("rule", required=False)
@click.option("--all", "all_rules", is_flag=True, help="Explain every rule.")
@click.option(
    "--output-format", type=click.Choice(("text", "json")), default="text", show_default=True
)
def rule(rule: str | None, all_rules: bool, output_format: str) -> None:
    """Explain a rule, given by its name or code, or every rule.

    Rules are what `trainlint check` looks for in source, what `trainlint probe` checks in a run,
    or both.
    """
    if (rule is None) != all_rules:
        raise UsageFault("name one rule, or give --all")
    try:
        rules = installed_rules()
    except RuleLoadError as error:
        raise UsageFault(str(error)) from error
    checks = _probe_checks()
    shown = _every(rules, checks) if rule is None else [_named(rule, rules, checks)]
    if output_format == "json":
        facts = [_facts(each, checks) for each in shown]
        click.echo(json.dumps(facts if all_rules else facts[0], indent=2))
    else:
        _print("\n\n".join(_markdown(each, checks) for each in shown))


def _probe_checks() -> dict[str, _Check]:
    """The checks of the probe by name; reading them needs no torch."""
    judge: Any = importlib.import_module("trainlint.runtime.judge")
    return {each.rule: _Check(each.rule, each.documentation) for each in judge.all_checks()}


def _every(rules: Sequence[Rule], checks: Mapping[str, _Check]) -> list[Rule | _Check]:
    """All rules, then what only a run can show."""
    named = {each.name for each in rules}
    return [*rules, *(check for check in checks.values() if check.name not in named)]


def _named(name: str, rules: Sequence[Rule], checks: Mapping[str, _Check]) -> Rule | _Check:
    known: dict[str, Rule | _Check] = dict(checks)
    known |= {key: each for each in rules for key in (each.code, each.name)}
    found = known.get(name) or known.get(name.upper()) or known.get(name.lower())
    if found is None:
        raise UsageFault(f"unknown rule {name!r}{did_you_mean(name, known)}")
    return found


def _facts(rule: Rule | _Check, checks: Mapping[str, _Check]) -> dict[str, object]:
    if isinstance(rule, _Check):
        return {
            "name": rule.name,
            "code": None,
            "family": "probe",
            "severity": None,
            "preview": False,
            "fix": None,
            "summary": rule.documentation.partition("\n")[0],
            "documentation": rule.documentation,
            "probe": rule.documentation,
        }
    return {
        "name": rule.name,
        "code": rule.code,
        "family": rule.family,
        "severity": rule.severity.value,
        "preview": rule.preview,
        "fix": rule.fix_safety.value if rule.fix_safety else None,
        "summary": rule.summary(),
        "documentation": rule.documentation(),
        "probe": checks[rule.name].documentation if rule.name in checks else None,
    }


def _markdown(rule: Rule | _Check, checks: Mapping[str, _Check]) -> str:
    if isinstance(rule, _Check):
        return f"# {rule.name}\n\nChecked in a run, by `trainlint probe`.\n\n{rule.documentation}"
    traits = [f"Severity: {rule.severity.value}."]
    if rule.fix_safety is not None:
        traits.append(f"Fix: {rule.fix_safety.value}.")
    if rule.preview:
        traits.append("Preview: runs only when selected by name, code or ALL.")
    text = f"# {rule.name} ({rule.code})\n\n{' '.join(traits)}\n\n{rule.documentation()}"
    if rule.name in checks:
        text += f"\n\n## In a run\n\n`trainlint probe`: {checks[rule.name].documentation}"
    return text


def _print(markdown: str) -> None:
    """Rendered for people; as it is for pipes and files."""
    if not sys.stdout.isatty():
        click.echo(markdown)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(no_color=not wants_colour("auto", sys.stdout)).print(Markdown(markdown))
