"""Findings as JSON values, and back."""

from __future__ import annotations

from typing import Any

from trainlint.finding import Applicability, Finding, Fix, Severity


def encode(finding: Finding) -> list[Any]:
    """Everything but the path, which the cache has already."""
    fix = finding.fix
    return [
        finding.line,
        finding.column,
        finding.end_line,
        finding.end_column,
        finding.code,
        finding.rule,
        finding.severity.value,
        finding.message,
        finding.help,
        [fix.applicability.value, fix.title] if fix else None,
        finding.statement_line,
        finding.statement_end_line,
        finding.cell,
    ]


def decode(path: str, values: list[Any]) -> Finding:
    """The finding of ``encode``, in the file ``path``."""
    line, column, end_line, end_column, code, rule, severity, message, help, fix, *rest = values
    statement_line, statement_end_line, cell = rest
    return Finding(
        path=path,
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
        code=code,
        rule=rule,
        severity=Severity(severity),
        message=message,
        help=help,
        fix=Fix(Applicability(fix[0]), fix[1]) if fix else None,
        statement_line=statement_line,
        statement_end_line=statement_end_line,
        cell=cell,
    )
