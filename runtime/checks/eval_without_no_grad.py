"""An evaluation pass builds autograd graphs that nothing uses.

It costs two to three times the memory, and collected outputs keep the graphs alive.

Fix: wrap the pass in ``torch.no_grad()`` or ``torch.inference_mode()``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "eval-without-no-grad"

# One forward with a graph can be a sample for the log.
CALLS = 2


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN for a loader pass, without any backward, whose outputs carry graphs."""
    trace = evidence.trace
    trained = {p.loader for p in trace.passes if p.backwards}
    passes = {i for i, p in enumerate(trace.passes) if p.loader not in trained}
    if not passes or not trained:
        yield NotChecked(RULE, "no pass over an evaluation loader was seen")
        return
    calls = [c for c in trace.calls if c.loader in passes and c.output_grad and not c.reached]
    if len(calls) >= CALLS:
        yield Finding(
            RULE,
            Level.WARN,
            f"evaluation of {calls[0].root} builds autograd graphs",
            f"{len(calls)} evaluation calls returned outputs with a graph that no backward used",
            "wrap the evaluation in torch.no_grad() or torch.inference_mode()",
            calls[0].place,
        )
