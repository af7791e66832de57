"""Running every check over the evidence, and the verdict that follows."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from trainlint.runtime import checks
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

_ORDER = {Level.FAIL: 0, Level.WARN: 1, Level.NOTE: 2}
# A finding of the first kind explains those of the second, which are then left out.
EXPLAINS = {
    "lr-stuck-at-zero": ("step-changes-nothing", "fixed-batch-not-learned"),
    "zero-grad-between": ("step-changes-nothing", "fixed-batch-not-learned", "graph-break-detach"),
    "optimizer-wrong-params": ("params-not-in-optimizer", "step-changes-nothing"),
    "optimizer-step-missing": ("fixed-batch-not-learned",),
    "zero-init-dead": ("graph-break-detach",),
    "modules-in-plain-list": ("params-not-in-optimizer",),
    "module-in-forward": ("params-not-in-optimizer", "modules-in-plain-list"),
    "update-lost-to-rounding": ("step-changes-nothing",),
    "softmax-single-class": ("softmax-before-cross-entropy", "fixed-batch-not-learned"),
    "nonfinite-values": ("fixed-batch-not-learned", "loss-at-start"),
    "mha-batch-first": ("batch-mixing",),
    "softmax-wrong-dim": ("batch-mixing",),
}


@dataclass(frozen=True)
class Check:
    """One file of ``runtime/checks``."""

    rule: str
    documentation: str
    run: Callable[[Evidence], Iterable[Result]]


@dataclass(frozen=True)
class Verdict:
    """All results of one probe, most serious first."""

    findings: list[Finding]
    not_checked: list[NotChecked]
    passed: list[str]

    @property
    def failed(self) -> bool:
        """Whether any finding is a FAIL."""
        return any(f.level is Level.FAIL for f in self.findings)

    @property
    def warned(self) -> bool:
        """Whether any finding is a WARN."""
        return any(f.level is Level.WARN for f in self.findings)

    @property
    def headline(self) -> str:
        """The verdict in three words."""
        if self.failed:
            return "fix before training"
        return "look at" if self.warned else "ready to train"


def all_checks() -> Iterator[Check]:
    """Every check, found by walking the package."""
    for info in pkgutil.iter_modules(checks.__path__):
        if info.name.startswith("_"):
            continue
        module: Any = importlib.import_module(f"{checks.__name__}.{info.name}")
        yield Check(module.RULE, inspect.cleandoc(module.__doc__ or ""), module.check)


def _results(check: Check, evidence: Evidence) -> list[Result]:
    """What a check says; one that fails itself does not cost the rest of the report."""
    try:
        return list(check.run(evidence))
    except Exception as problem:
        reason = f"the check itself failed ({type(problem).__name__}: {problem}): please report it"
        return [NotChecked(check.rule, reason)]


def judge(evidence: Evidence) -> Verdict:
    """Run every check. Without any optimizer step, only what needs none can be said."""
    results: list[Result] = []
    passed = []
    for check in all_checks():
        own = _results(check, evidence)
        results += own
        if not own:
            passed.append(check.rule)
    findings = [r for r in results if isinstance(r, Finding)]
    hidden = {rule for f in findings for rule in EXPLAINS.get(f.rule, ())}
    shown = [f for f in findings if f.rule not in hidden]
    return Verdict(
        sorted(shown, key=lambda f: (_ORDER[f.level], f.rule)),
        [r for r in results if isinstance(r, NotChecked)],
        passed,
    )
