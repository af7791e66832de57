"""Gradients fade on the way to the first layers.

A contiguous run of layers at the beginning whose gradients, relative to their weights, are tiny
against the median of the rest. Biases before norms have none by construction and are left out.

Fix: initialisation, normalisation, residual connections, another activation.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from trainlint.runtime.checks._words import named
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import ParamFacts

RULE = "gradient-flow"

# Relative to the median layer. Published absolute thresholds flag healthy networks.
FADED = 1e-6
LEAST_LAYERS = 4
AFTER = 2


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN for a vanishing prefix of weight matrices."""
    own = [p for p in evidence.trace.params if p.kind == "weight" and p.order is not None]
    own = sorted((p for p in own if len(p.grad_norm) > AFTER), key=lambda p: p.order or 0)
    if len(own) < LEAST_LAYERS:
        yield NotChecked(RULE, f"fewer than {LEAST_LAYERS} weight matrices with gradients")
        return
    sizes = [_size(p) for p in own]
    median = statistics.median(sizes)
    count = 0
    while count < len(sizes) // 2 and sizes[count] < FADED * median:
        count += 1
    if count:
        yield Finding(
            RULE,
            Level.WARN,
            f"gradients vanish in the first {count} layers",
            f"relative to their weights they are below {FADED:g} of the median layer's: "
            f"{named(own[:count])}",
            "check activations and initialisation; add normalisation or residual connections",
        )


def _size(param: ParamFacts) -> float:
    weights = _finite(param.weight_norm[AFTER:]) or [1.0]
    grads = _finite(param.grad_norm[AFTER:]) or [0.0]
    return statistics.median(grads) / max(statistics.median(weights), 1e-12)


def _finite(values: list[float]) -> list[float]:
    return [v for v in values if math.isfinite(v)]
