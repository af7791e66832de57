"""A GitLab code quality report: shown in merge requests, which compare it by fingerprint."""

from __future__ import annotations

import hashlib
import json

from trainlint.finding import Finding, Severity
from trainlint.output.context import FileError, OutputContext
from trainlint.output.fingerprints import fingerprints
from trainlint.output.wording import repository_path

_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.INFO: "info"}


def render(context: OutputContext) -> str:
    """A JSON array with an issue for each finding and each file that could not be checked."""
    issues = [
        _issue(finding, fingerprint)
        for finding, fingerprint in zip(context.findings, fingerprints(context), strict=True)
    ]
    issues += [_file_error(error) for error in context.errors]
    return json.dumps(issues, indent=2) + "\n"


def _issue(finding: Finding, fingerprint: str) -> dict[str, object]:
    """A notebook's issue stands on line 1: GitLab counts the lines of the file's JSON."""
    in_cell = f"cell {finding.cell}, line {finding.line}: "
    begin = (finding.line, finding.column) if finding.cell is None else (1, 1)
    end = (finding.end_line, finding.end_column) if finding.cell is None else (1, 1)
    return {
        "type": "issue",
        "check_name": finding.rule,
        "description": f"{in_cell * (finding.cell is not None)}{finding.code} {finding.message}",
        "categories": ["Bug Risk"],
        "severity": _SEVERITIES[finding.severity],
        "fingerprint": fingerprint,
        "location": {
            "path": repository_path(finding.path),
            "positions": {
                "begin": {"line": begin[0], "column": begin[1]},
                "end": {"line": end[0], "column": end[1]},
            },
        },
    }


def _file_error(error: FileError) -> dict[str, object]:
    path = repository_path(error.path)
    identity = f"{path}\0{error.message}".encode("utf-8", "surrogatepass")
    return {
        "type": "issue",
        "check_name": "file-not-checked",
        "description": error.message,
        "categories": ["Bug Risk"],
        "severity": "blocker",
        "fingerprint": hashlib.sha256(identity).hexdigest()[:40],
        "location": {"path": path, "lines": {"begin": 1}},
    }
