"""Phrases that several checks share."""

from __future__ import annotations

from collections.abc import Iterable

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.trace import ParamFacts

NO_STEP = "no optimizer step was seen"


def named(params: Iterable[ParamFacts], most: int = 4) -> str:
    """The names of some parameters, shortened."""
    names = [p.name or f"unnamed {tuple(p.shape)}" for p in params]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def too_few_steps(evidence: Evidence, wanted: int) -> str:
    """Why a check that needs ``wanted`` steps cannot run; empty if it can."""
    seen = len(evidence.trace.steps)
    if seen >= wanted:
        return ""
    return NO_STEP if not seen else f"only {seen} optimizer steps were seen"
