"""SARIF 2.1.0 (OASIS), read by GitHub code scanning, Azure DevOps, editors and many others."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING
from urllib.parse import quote

from trainlint import __version__
from trainlint.finding import Finding, Severity
from trainlint.output.context import FileError, OutputContext
from trainlint.output.fingerprints import fingerprints
from trainlint.output.wording import repository_path

if TYPE_CHECKING:
    from trainlint.rule import Rule

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_FINGERPRINT = "trainlint/v1"


def render(context: OutputContext) -> str:
    """A log with one run; it describes all rules of the context, whether they fired or not."""
    rules = sorted(context.rules, key=lambda rule: rule.code)
    driver = {
        "name": "trainlint",
        "version": __version__,
        "rules": [_rule(rule) for rule in rules],
    }
    invocation = {
        "executionSuccessful": not context.errors,
        "toolExecutionNotifications": [_notification(error) for error in context.errors],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": _results(context, rules),
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary()},
        "fullDescription": {"text": rule.summary()},
        "help": {"text": rule.documentation(), "markdown": rule.documentation()},
        "defaultConfiguration": {
            "level": _LEVELS[rule.severity],
            "enabled": not rule.preview and rule.severity is not Severity.INFO,
        },
        "properties": {"tags": [rule.family]},
    }


def _results(context: OutputContext, rules: Sequence[Rule]) -> list[dict[str, object]]:
    indices = {rule.code: index for index, rule in enumerate(rules)}
    results = []
    for finding, fingerprint in zip(context.findings, fingerprints(context), strict=True):
        result: dict[str, object] = {
            "ruleId": finding.code,
            "level": _LEVELS[finding.severity],
            "message": {"text": _message(finding)},
            "locations": [_location(finding)],
            "partialFingerprints": {_FINGERPRINT: fingerprint},
        }
        if finding.code in indices:
            result["ruleIndex"] = indices[finding.code]
        results.append(result)
    return results


def _message(finding: Finding) -> str:
    """The reason and the help; code in a notebook's cell is found by these words alone."""
    place = "" if finding.cell is None else f"Cell {finding.cell}, line {finding.line}: "
    return f"{place}{finding.message}\n{finding.help}".rstrip()


def _location(finding: Finding) -> dict[str, object]:
    """A notebook's result stands on line 1: readers count the lines of the file's JSON."""
    artifact = {"uri": _uri(finding.path)}
    if finding.cell is not None:
        region = {"startLine": 1}
        cell = {"fullyQualifiedName": f"cell {finding.cell}", "kind": "module"}
        return {
            "physicalLocation": {"artifactLocation": artifact, "region": region},
            "logicalLocations": [cell],
        }
    region = {
        "startLine": finding.line,
        "startColumn": finding.column,
        "endLine": finding.end_line,
        "endColumn": finding.end_column,
    }
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}


def _notification(error: FileError) -> dict[str, object]:
    location = {"physicalLocation": {"artifactLocation": {"uri": _uri(error.path)}}}
    return {
        "level": "error",
        "message": {"text": f"{error.path}: {error.message}"},
        "locations": [location],
    }


def _uri(path: str) -> str:
    relative = PurePath(repository_path(path))
    if relative.is_absolute():
        return Path(relative).as_uri()
    return quote(os.fsencode(relative.as_posix()))
