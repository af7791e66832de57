"""Workflow commands: GitHub Actions shows them beside the changed lines of a pull request."""

from __future__ import annotations

from trainlint.finding import Finding, Severity
from trainlint.output.context import FileError, OutputContext
from trainlint.output.wording import place, repository_path

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(context: OutputContext) -> str:
    """One command a finding and a file that could not be checked."""
    commands = [_finding(finding) for finding in context.findings]
    commands += [_file_error(error) for error in context.errors]
    return "".join(f"{command}\n" for command in commands)


def _finding(finding: Finding) -> str:
    """Columns only within one line, and no lines of notebooks: GitHub knows their JSON only."""
    properties = {
        "title": f"trainlint ({finding.code} {finding.rule})",
        "file": repository_path(finding.path),
    }
    if finding.cell is None:
        properties |= {"line": str(finding.line), "endLine": str(finding.end_line)}
        if finding.line == finding.end_line:
            properties |= {"col": str(finding.column), "endColumn": str(finding.end_column)}
    message = f"{place(finding)}: {finding.code} {finding.message}"
    if finding.help:
        message += f"\n{finding.help}"
    return _command(_COMMANDS[finding.severity], properties, message)


def _file_error(error: FileError) -> str:
    properties = {"title": "trainlint", "file": repository_path(error.path)}
    return _command("error", properties, f"{error.path}: {error.message}")


def _command(name: str, properties: dict[str, str], message: str) -> str:
    written = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {written}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
