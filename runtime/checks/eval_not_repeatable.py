"""Two evaluation forwards of the same batch differ.

A model with dropout that is random although in evaluation mode; noise that is drawn on purpose (a
VAE, diffusion) uses other operations and is left alone.

Fix: pass ``training=self.training``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "eval-not-repeatable"

_DROPS = ("bernoulli", "dropout")


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN for dropout-like randomness in evaluation mode."""
    extra = evidence.trace.extra
    if extra is None or extra.repeatable is None:
        yield NotChecked(RULE, "no extra forward was made")
        return
    drops = [name for name in extra.random_ops if any(d in name for d in _DROPS)]
    if not extra.repeatable and drops and not evidence.trace.dropouts:
        yield Finding(
            RULE,
            Level.WARN,
            f"{extra.model} is random in evaluation mode",
            f"two forwards of one batch differ; random operations: {', '.join(drops)}",
            "let the randomness depend on self.training",
            extra.place,
        )
