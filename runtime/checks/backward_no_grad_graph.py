"""``backward`` is called on a loss without a graph.

The forward ran under ``no_grad``, was detached, or all parameters are frozen.

Fix: compute the loss from outputs that carry a graph.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, Result

RULE = "backward-no-grad-graph"

MESSAGE = "does not require grad"


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for the backward that torch refused."""
    for event in evidence.trace.events:
        if event.kind == "backward-failed" and MESSAGE in event.detail:
            yield Finding(
                RULE,
                Level.FAIL,
                "backward on a loss that has no graph",
                event.detail,
                "do not detach, convert or compute the loss under no_grad; unfreeze something",
                event.place,
            )
            return
