"""A second backward through a graph that is already gone, or was changed by a step.

Typical: a hidden state carried over without ``detach``, or two losses sharing one forward.

Fix: detach what is carried over; add the losses and call backward once.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, Result

RULE = "double-backward-shared-graph"

MESSAGES = ("second time", "modified by an inplace operation")


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for the backward that torch refused."""
    for event in evidence.trace.events:
        if event.kind == "backward-failed" and any(m in event.detail for m in MESSAGES):
            yield Finding(
                RULE,
                Level.FAIL,
                "backward through a graph that was used or changed before",
                event.detail,
                "detach state that is carried over, or call backward once on the sum",
                event.place,
            )
            return
