"""A module with the old ``spectral_norm`` runs its first forward in evaluation mode.

Its power iteration starts in training mode only, so the first outputs are scaled wrongly.

Fix: use ``torch.nn.utils.parametrizations.spectral_norm``, or run in training mode first.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "spectral-norm-first-in-eval"


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN for each run in which it happened."""
    trace = evidence.trace
    if not trace.modules:
        yield NotChecked(RULE, "no module call was seen")
        return
    events = [e for e in trace.events if e.kind == RULE]
    if events:
        yield Finding(
            RULE,
            Level.WARN,
            "spectral norm is used before it is initialised",
            f"{events[0].detail} ran in evaluation mode before any forward in training mode",
            "use torch.nn.utils.parametrizations.spectral_norm, or call train() first",
            events[0].place,
        )
