"""Colours of the formats for people, as terminals have understood them for forty years."""

from __future__ import annotations

from trainlint.finding import Applicability, Fix, Severity

BOLD = "1"
BLUE = "1;34"
CYAN = "36"
GREEN = "32"
YELLOW = "33"

_BY_SEVERITY = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.INFO: "1;36"}


def of_severity(severity: Severity) -> str:
    """Red, yellow or cyan, the more serious the warmer."""
    return _BY_SEVERITY[severity]


def of_fix(fix: Fix | None) -> str:
    """Green for a safe fix, yellow for one that needs a look."""
    return GREEN if fix is not None and fix.applicability is Applicability.SAFE else YELLOW


def painted(text: str, colour: str, enabled: bool) -> str:
    """The text in that colour, or as it is when colours are off."""
    return f"\x1b[{colour}m{text}\x1b[0m" if enabled and text else text
