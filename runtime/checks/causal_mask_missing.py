"""A language model whose output at a position depends on later tokens.

The training loss collapses and generation is garbage. Only judged where the targets are the next
tokens; masked language models look ahead by design.

Fix: pass a causal mask.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "causal-mask-missing"

# Rounding differences stay far below.
LEAK = 1e-3
AGREES = 0.9


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL if the last token changes earlier outputs of a next-token model."""
    extra = evidence.trace.extra
    shifted = [c for c in evidence.trace.losses if c.shift.get("1", 0) > AGREES]
    if extra is None or extra.causal_leak is None or not shifted:
        yield NotChecked(RULE, "no next-token model with one output a position was seen")
        return
    if extra.causal_leak > LEAK:
        yield Finding(
            RULE,
            Level.FAIL,
            f"{extra.model} sees the tokens that it should predict",
            f"changing only the last token moved earlier outputs by {extra.causal_leak:.2g} "
            "of their size, and the targets are the next tokens",
            "pass a causal mask (is_causal=True, or a mask that hides later positions)",
            extra.place,
        )
