"""Trainable parameters get gradients, but no optimizer holds them.

Typical: a layer added, replaced or unfrozen after the optimizer was built. Judged at the end of
the run, so that optimizers created later count; parameters that the script updates by hand are
left alone. If a whole network belongs to no optimizer (a perceptual loss), it is only a warning.

Fix: build the optimizer after the model is complete.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._words import named
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "params-not-in-optimizer"

# A parameter needs this many gradients before its absence from every optimizer means anything.
BACKWARDS = 2


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for forgotten parameters of a network that is trained, WARN for a whole network."""
    trace = evidence.trace
    if not trace.optimizers:
        yield NotChecked(RULE, "the script made no torch optimizer")
        return
    forgotten = [
        p
        for p in trace.params
        if p.name
        and p.backwards >= BACKWARDS
        and not p.optimizers
        and p.registered
        and not p.moved_by_hand
        and p.requires_grad
        and p.alive
    ]
    trained = {p.root for p in trace.params if p.optimizers}
    for root in sorted({p.root for p in forgotten}):
        params = [p for p in forgotten if p.root == root]
        whole = root not in trained
        yield Finding(
            RULE,
            Level.WARN if whole else Level.FAIL,
            f"{len(params)} trained-looking parameters of {root} are in no optimizer",
            f"they get gradients in backward, but no step can change them: {named(params)}",
            "pass them to the optimizer, or set requires_grad=False if they are to stay frozen",
            next((o.place for o in trace.optimizers), None),
        )
