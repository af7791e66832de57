"""A layer with parameters is created anew at each forward pass.

Its weights are random at each step and never learned.

Fix: create it in ``__init__``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "module-in-forward"


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for an unregistered module whose line runs a new instance at a later step."""
    trace = evidence.trace
    if not trace.modules:
        yield NotChecked(RULE, "no module call was seen")
        return
    for module in trace.modules:
        if not module.registered and module.instances > 1 and module.parameters:
            yield Finding(
                RULE,
                Level.FAIL,
                f"a new {module.cls} is created in the forward pass of {module.root}",
                f"{module.instances} different instances ran at one line; none can be trained",
                "create the layer once, in __init__",
                module.place,
            )
