"""Small hand-made traces for tests of checks that need no torch."""

from __future__ import annotations

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level
from trainlint.runtime.judge import judge
from trainlint.runtime.trace import (
    GroupFacts,
    OptimizerFacts,
    ParamFacts,
    Place,
    Step,
    TensorFacts,
    Trace,
)

HERE = Place("train.py", 10, "optimizer.step()")


def healthy(steps: int = 8) -> Trace:
    """One optimizer, two parameters, nothing wrong."""
    trace = Trace()
    trace.ending.kind = "stopped"
    trace.optimizers = [OptimizerFacts("SGD", HERE, [GroupFacts(0.1, 0.0, [0, 1])], steps, steps)]
    for name in ("first.weight", "head.weight"):
        param = ParamFacts(name, [8, 8], 64, "float32", root="Net", order=len(trace.params))
        param.optimizers, param.backwards, param.steps = [0], steps, steps
        param.with_grad = param.changed = steps
        param.ran_with_grad = True
        param.grad_norm, param.weight_norm = [1.0] * steps, [3.0] * steps
        param.update_norm = [0.003] * steps
        trace.params.append(param)
    for own in range(steps):
        step = Step(0, own, 0, HERE, False, [0.1], 2, with_grad=2, changed=2, backwards=1)
        step.loss, step.grad_norm = 1.0 / (own + 1), 1.4
        step.update_norm, step.weight_norm = 0.004, 4.2
        trace.steps.append(step)
    return trace


def facts(low: float, high: float, shape: list[int], **more: object) -> TensorFacts:
    """What a loss saw, with a gradient."""
    made = TensorFacts(shape, "float32", True, low, high)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def levels(trace: Trace, **phases: Trace) -> dict[str, Level]:
    """Rule to level, for what the checks find."""
    evidence = Evidence("train.py", observe=trace, **phases)
    return {f.rule: f.level for f in findings(evidence)}


def findings(evidence: Evidence) -> list[Finding]:
    """What the checks find."""
    return judge(evidence).findings
