"""A model wrapped in DistributedDataParallel is trained through its inner module.

DDP synchronises gradients only in the wrapper's forward, so the ranks drift apart silently. Visible
even in a single process.

Fix: call the wrapper.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "ddp-bypass-forward"


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL if the inner module was trained and the wrapper never called."""
    trace = evidence.trace
    if not trace.wrapped:
        yield NotChecked(RULE, "nothing was wrapped in DistributedDataParallel")
        return
    if trace.inner_calls and not trace.wrapper_calls and trace.backwards:
        yield Finding(
            RULE,
            Level.FAIL,
            f"{trace.wrapped[0]} is trained past its DDP wrapper",
            f"the inner module was called {trace.inner_calls} times, the wrapper never",
            "call the DDP wrapper, not the module inside it",
            trace.inner_place,
        )
