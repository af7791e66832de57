"""Host-device synchronisations a step.

Fix: log every n-th step; avoid ``.item()`` and ``.cpu()`` in the loop.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "host-syncs"

MOST = 3.0


def check(evidence: Evidence) -> Iterator[Result]:
    """NOTE for many synchronisations; needs a CUDA device."""
    counts = [s.syncs for s in evidence.trace.steps if s.lap == 0 and s.syncs is not None]
    if not counts:
        yield NotChecked(RULE, "the script did not run on a CUDA device")
        return
    mean = sum(counts) / len(counts)
    if mean > MOST:
        yield Finding(
            RULE,
            Level.NOTE,
            f"{mean:.1f} host-device synchronisations a step",
            "each one makes the device wait for Python",
            "call .item(), .cpu() and print less often",
        )
