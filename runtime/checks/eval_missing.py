"""An evaluation pass runs with dropout on and batch norm learning from the evaluation data.

A pass counts as evaluation when it draws at least two batches from a loader that is not trained on
and no backward follows. Recomputing batch norm statistics with ``torch.optim.swa_utils`` is left
alone, and so is Monte Carlo dropout, where batch norm is in evaluation mode.

Fix: call ``model.eval()`` before, and ``model.train()`` after.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "eval-missing"

# One call under no_grad can be a sample for the log.
CALLS = 2


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL if every switchable layer was in training mode throughout an evaluation pass."""
    trace = evidence.trace
    trained = {p.loader for p in trace.passes if p.backwards}
    passes = {i for i, p in enumerate(trace.passes) if p.loader not in trained and not p.backwards}
    if not passes or not trained:
        yield NotChecked(RULE, "no pass over an evaluation loader was seen")
        return
    taught = {c.root for c in evidence.training_calls()}
    calls = [
        c
        for c in trace.calls
        if c.loader in passes and not c.reached and not c.averaging and c.root in taught
    ]
    for root in sorted({c.root for c in calls}):
        own = [c for c in calls if c.root == root]
        on = [c for c in own if c.dropout_on + c.norm_on and not c.dropout_off + c.norm_off]
        if len(on) >= CALLS and len(on) == len(own):
            yield Finding(
                RULE,
                Level.FAIL,
                f"{root} is evaluated in training mode",
                f"{len(on)} evaluation batches ran with {on[0].dropout_on} dropout and "
                f"{on[0].norm_on} batch norm layers in training mode ({on[0].first_on})",
                "call eval() before the evaluation pass and train() after it",
                on[0].place,
            )
