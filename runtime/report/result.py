"""The report object that every way of running the probe returns."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

from trainlint.runtime.evidence import BROKEN, Evidence
from trainlint.runtime.findings import Finding
from trainlint.runtime.judge import Verdict
from trainlint.runtime.report.memory import batch_that_fits
from trainlint.runtime.static import StaticFinding
from trainlint.runtime.trace import Place, Trace

# The shape of the JSON; raised whenever a key changes its meaning or goes away.
FORMAT = 1


@dataclass
class Report:
    """What the probe saw and what it concludes."""

    evidence: Evidence
    verdict: Verdict
    static: list[StaticFinding] = field(default_factory=list)

    @property
    def findings(self) -> list[Finding]:
        """All findings, most serious first."""
        return self.verdict.findings

    @property
    def failed(self) -> bool:
        """Whether there is a FAIL."""
        return self.verdict.failed

    @property
    def broken(self) -> str:
        """Why the script did not get to the end of the observation; empty if it did."""
        if self.evidence.interrupted:
            return "interrupted"
        rank, ending = self.evidence.ending
        nonzero = ending.kind == "exit" and not self.evidence.trace.steps
        if ending.kind in BROKEN or nonzero:
            where = f"rank {rank} " if len(self.evidence.ranks) > 1 else ""
            return f"{where}{ending.kind}: {ending.detail}"
        return ""

    @property
    def headline(self) -> str:
        """The verdict in three words; a run that broke off is never called ready."""
        if self.failed:
            return self.verdict.headline
        if self.broken:
            return "unfinished"
        return self.verdict.headline if self.evidence.trace.steps else "nothing to judge"

    def exit_code(self, strict: bool = False) -> int:
        """2 for a broken run, 1 for a FAIL (with ``strict``, a WARN), otherwise 0."""
        if self.broken:
            return 2
        return int(self.failed or (strict and self.verdict.warned))

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data; the keys are documented in :func:`describe_json`."""
        trace = self.evidence.trace
        _, ending = self.evidence.ending
        return {
            "format": FORMAT,
            "script": self.evidence.script,
            "verdict": self.headline,
            "ending": {"kind": ending.kind, "detail": ending.detail},
            "seconds": round(self.evidence.seconds, 3),
            "findings": [_finding(f) for f in self.findings],
            "not_checked": [{"rule": n.rule, "reason": n.reason} for n in self.verdict.not_checked],
            "passed": self.verdict.passed,
            "static": [dataclasses.asdict(s) for s in self.static],
            "skipped": self.evidence.skipped,
            "phases": {t.phase: _phase(t) for t in self.phases()},
            "memory": {
                **dataclasses.asdict(trace.memory),
                "batch_that_fits": batch_that_fits(trace.memory),
            },
            "files": {"redirected": trace.redirected, "created": trace.created},
            "notes": trace.notes,
            "instrument_errors": trace.instrument_errors,
        }

    def phases(self) -> list[Trace]:
        """The traces of the phases that ran."""
        e = self.evidence
        return [t for t in (e.observe, e.fixed, e.zeroed, e.replay) if t is not None]

    def _repr_html_(self) -> str:
        """The rich display of a notebook."""
        from trainlint.runtime.report.html import render

        return render(self)

    def __str__(self) -> str:
        lines = [self.headline]
        lines += [
            f"{f.level.value.upper()} {f.rule}: {f.title} ({f.evidence})" for f in self.findings
        ]
        return "\n".join(lines)


def _place(place: Place | None) -> dict[str, Any] | None:
    return None if place is None else {"file": place.file, "line": place.line, "text": place.text}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "level": finding.level.value,
        "title": finding.title,
        "evidence": finding.evidence,
        "fix": finding.fix,
        "place": _place(finding.place),
    }


def _number(value: float | None) -> float | None:
    """JSON has no NaN and no infinity."""
    return value if value is not None and math.isfinite(value) else None


def _phase(trace: Trace) -> dict[str, Any]:
    return {
        "steps": len(trace.steps),
        "seconds": round(trace.seconds, 3),
        "losses": [_number(s.loss) for s in trace.steps],
        "gradient_norms": [_number(s.grad_norm) for s in trace.steps],
        "update_norms": [_number(s.update_norm) for s in trace.steps],
        "ending": trace.ending.kind,
    }


def describe_json() -> dict[str, str]:
    """What each key of the JSON report means."""
    return {
        "format": "version of this shape",
        "script": "the script or module that was run",
        "verdict": "ready to train, look at, fix before training, unfinished or nothing to judge",
        "ending": "how the observed run ended: kind and detail",
        "seconds": "wall-clock time of the whole probe",
        "findings": "rule, level (fail, warn, note), title, evidence, fix, place (or null)",
        "not_checked": "rule and reason, for each check that could not look",
        "passed": "rules that looked and found nothing",
        "static": "with --check: rule, path, line, message, and confirmed, cleared or not reached",
        "skipped": "phases that did not run, and why",
        "phases": "steps, seconds, losses, gradient_norms, update_norms, ending; by phase",
        "memory": "bytes: weights, gradients, optimizer, activations, peak, capacity; device; "
        "batch, and about the largest batch_that_fits (or null)",
        "files": "redirected: written to the run folder instead; created: new files of the script",
        "notes": "what the probe did differently from a plain run",
        "instrument_errors": "measurements that failed without disturbing the script",
    }
