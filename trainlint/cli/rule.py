"""``trainlint rule``: prints the documentation of rules."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click

from trainlint.catalogue import RuleLoadError, installed_rules
from trainlint.cli.faults import UsageFault
from trainlint.cli.terminal import wants_colour
from trainlint.config.errors import did_you_mean
from trainlint.rule import Rule


@click.command(short_help="Explain a rule.")
@click.argument("rule", required=False)
@click.option("--all", "all_rules", is_flag=True, help="Explain every rule.")
@click.option(
    "--output-format", type=click.Choice(("text", "json")), default="text", show_default=True
)
def rule(rule: str | None, all_rules: bool, output_format: str) -> None:
    """Explain a rule, given by its name or code, or every rule."""
    if (rule is None) != all_rules:
        raise UsageFault("name one rule, or give --all")
    try:
        rules = installed_rules()
    except RuleLoadError as error:
        raise UsageFault(str(error)) from error
    shown = rules if rule is None else [_named(rule, rules)]
    if output_format == "json":
        facts = [_facts(each) for each in shown]
        click.echo(json.dumps(facts if all_rules else facts[0], indent=2))
    else:
        _print("\n\n".join(_markdown(each) for each in shown))


def _named(name: str, rules: Sequence[Rule]) -> Rule:
    known = {key: each for each in rules for key in (each.code, each.name)}
    found = known.get(name) or known.get(name.upper()) or known.get(name.lower())
    if found is None:
        raise UsageFault(f"unknown rule {name!r}{did_you_mean(name, known)}")
    return found


def _facts(rule: Rule) -> dict[str, object]:
    return {
        "name": rule.name,
        "code": rule.code,
        "family": rule.family,
        "severity": rule.severity.value,
        "preview": rule.preview,
        "fix": rule.fix_safety.value if rule.fix_safety else None,
        "summary": rule.summary(),
        "documentation": rule.documentation(),
    }


def _markdown(rule: Rule) -> str:
    traits = [f"Severity: {rule.severity.value}."]
    if rule.fix_safety is not None:
        traits.append(f"Fix: {rule.fix_safety.value}.")
    if rule.preview:
        traits.append("Preview: runs only when selected by name, code or ALL.")
    return f"# {rule.name} ({rule.code})\n\n{' '.join(traits)}\n\n{rule.documentation()}"


def _print(markdown: str) -> None:
    """Rendered for people; as it is for pipes and files."""
    if not sys.stdout.isatty():
        click.echo(markdown)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(no_color=not wants_colour("auto", sys.stdout)).print(Markdown(markdown))
