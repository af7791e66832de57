"""How the script ended, where that matters for the verdict.

A script that ends by itself, or is stopped by the probe, is a normal result.

Fix: see the traceback.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import NotChecked, Result

RULE = "script-ending"


def check(evidence: Evidence) -> Iterator[Result]:
    """NOTE for few steps; the exit code says the rest."""
    trace = evidence.trace
    if not trace.steps and trace.ending.kind in ("finished", "exit", "stopped"):
        yield NotChecked(RULE, f"no optimizer step was seen before the end ({trace.ending.detail})")
