"""Gradients are clipped where it has no effect: after the step, or before backward.

Fix: clip between ``backward`` and ``step``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import Event

RULE = "clip-wrong-place"

CLIPS = 2


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL if every clip of an optimizer comes after its step; WARN if it clips nothing."""
    clips = [e for e in evidence.trace.events if e.kind == "clip" and "measuring" not in e.detail]
    if not clips:
        yield NotChecked(RULE, "the script does not clip gradients")
        return
    late: list[Event] = []
    timely: list[Event] = []
    last: dict[int | None, str] = {}
    for event in evidence.trace.events:
        if event.kind == "backward":
            last = dict.fromkeys(last, "backward")
        elif event.kind == "step":
            last[event.subject] = "step"
        elif event in clips:
            before = last.get(event.subject, "backward")
            useful = before == "backward" and "with-gradients" in event.detail
            (timely if useful else late).append(event)
    known = [e for e in late if e.subject is not None or "empty" in e.detail]
    if len(known) >= CLIPS and not timely:
        empty = "empty" in known[0].detail
        yield Finding(
            "params-generator-exhausted" if empty else RULE,
            Level.FAIL,
            "gradients are clipped where it has no effect",
            f"all {len(clips)} clips came after the step, before backward, or got no parameters",
            "clip between backward() and step(), with a fresh model.parameters()",
            known[0].place,
        )
