"""The format for programs: one JSON object, whose form only changes with its ``version``.

::

    {
      "version": 1,
      "tool": {"name": "trainlint", "version": "0.1.0"},
      "findings": [
        {
          "path": "src/train.py",            as given on the command line, or below it
          "cell": null,                      in a notebook, the code cell, counted from 1
          "line": 21, "column": 9,           from 1; in a notebook, within the cell
          "end_line": 21, "end_column": 25,  exclusive
          "code": "TLG001",
          "rule": "zero-grad-missing",
          "severity": "error",               or "warning", "info"
          "message": "...",
          "help": "...",
          "fix": {                           or null
            "applicability": "safe",         or "unsafe"
            "title": "add `optimizer.zero_grad()`"
          }
        }
      ],
      "errors": [                            files that could not be checked
        {"path": "src/old.py", "message": "cannot parse at line 3: ..."}
      ],
      "summary": {
        "files": 12,                         files checked
        "errors": 1, "warnings": 0, "infos": 0,
        "fixable": 1,                        with --fix and the other options of this run
        "fixable_unsafe": 0,                 more with --unsafe-fixes
        "fixed": 0                           already repaired in this run, not among the findings
      }
    }

Within a version, members may be added, but none is removed and none changes its meaning.
"""

from __future__ import annotations

import json

from trainlint import __version__
from trainlint.finding import Finding, Severity
from trainlint.output.context import OutputContext

VERSION = 1
"""Of this format and of the one of ``--statistics``."""


def render(context: OutputContext) -> str:
    """The whole run as one indented JSON object."""
    content = {
        "version": VERSION,
        "tool": {"name": "trainlint", "version": __version__},
        "findings": [_finding(finding) for finding in context.findings],
        "errors": [{"path": error.path, "message": error.message} for error in context.errors],
        "summary": {
            "files": context.file_count,
            "errors": context.count(Severity.ERROR),
            "warnings": context.count(Severity.WARNING),
            "infos": context.count(Severity.INFO),
            "fixable": context.fixable_count,
            "fixable_unsafe": context.hidden_fix_count,
            "fixed": context.fixed_count,
        },
    }
    return json.dumps(content, indent=2) + "\n"


def _finding(finding: Finding) -> dict[str, object]:
    fix = finding.fix
    return {
        "path": finding.path,
        "cell": finding.cell,
        "line": finding.line,
        "column": finding.column,
        "end_line": finding.end_line,
        "end_column": finding.end_column,
        "code": finding.code,
        "rule": finding.rule,
        "severity": finding.severity.value,
        "message": finding.message,
        "help": finding.help,
        "fix": fix and {"applicability": fix.applicability.value, "title": fix.title},
    }
