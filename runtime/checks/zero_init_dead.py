"""All factors of a product start at zero, so that none ever gets a gradient.

Fix: initialise one of them randomly.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._words import named, too_few_steps
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "zero-init-dead"

STEPS = 3


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for weights that are zero, with gradients that are exactly zero, at each step."""
    if reason := too_few_steps(evidence, STEPS):
        yield NotChecked(RULE, reason)
        return
    dead = [
        p
        for p in evidence.trace.params
        if p.kind == "weight"
        and p.steps >= STEPS
        and p.with_grad == p.zero_grad == p.steps
        and p.weight_norm
        and not any(p.weight_norm)
    ]
    if dead:
        yield Finding(
            RULE,
            Level.FAIL,
            f"{len(dead)} weights are zero and stay zero",
            f"weights and gradients are exactly zero at all steps: {named(dead)}",
            "initialise one factor of the product randomly",
            evidence.trace.optimizers[dead[0].optimizers[0]].place if dead[0].optimizers else None,
        )
