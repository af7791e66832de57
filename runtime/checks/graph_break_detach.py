"""Parameters ran in the forward pass and are in an optimizer, but never get a gradient.

If the first layers that ran get none and later ones do, the graph is cut between them
(``.detach()``, ``.data``, ``.item()``, ``no_grad``, a numpy round trip): FAIL. Branches elsewhere
that the loss does not use, and layers that never run, are common in published models and only
noted.

Fix: remove the cut, or freeze the part before it.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.checks._words import named, too_few_steps
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result
from trainlint.runtime.trace import ParamFacts

RULE = "graph-break-detach"

# Own steps a parameter must have been through without any gradient.
STEPS = 3


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for a cut-off beginning, WARN if it ran under no_grad, NOTE for branches."""
    if reason := too_few_steps(evidence, STEPS):
        yield NotChecked(RULE, reason)
        return
    trace = evidence.trace
    yield from _unused(evidence)
    ran = [p for p in trace.params if p.order is not None and p.requires_grad and p.optimizers]
    ran = [p for p in ran if p.steps >= STEPS]
    for root in sorted({p.root for p in ran}):
        own = sorted((p for p in ran if p.root == root), key=lambda p: p.order or 0)
        without = [p for p in own if not p.backwards]
        if not without or (len(without) == len(own) and len(trace.optimizers) > 1):
            continue
        yield from _judge(own, without, root)


def _unused(evidence: Evidence) -> Iterator[Finding]:
    """NOTE for parts of a trained model whose turn never comes."""
    params = [p for p in evidence.trace.params if p.optimizers and p.steps >= STEPS]
    for root in sorted({p.root for p in params if p.root}):
        own = [p for p in params if p.root == root and p.requires_grad]
        unused = [p for p in own if p.order is None and not p.backwards]
        if unused and len(unused) < len(own):
            yield Finding(
                RULE,
                Level.NOTE,
                f"{len(unused)} parameters of {root} are never used",
                f"they are in the optimizer, but their layers did not run: {named(unused)}",
                "call these layers in forward, or remove them",
            )


def _judge(own: list[ParamFacts], without: list[ParamFacts], root: str) -> Iterator[Result]:
    last = max(p.order or 0 for p in without)
    beginning = all(not p.backwards for p in own if (p.order or 0) <= last)
    under_no_grad = all(not p.ran_with_grad for p in without)
    if beginning and len(without) < len(own):
        yield Finding(
            RULE,
            Level.WARN if under_no_grad else Level.FAIL,
            f"no gradient reaches the first {len(without)} parameters of {root}",
            f"they ran, are in the optimizer, and never got a gradient, while later layers do: "
            f"{named(without)}" + ("; they only ran under no_grad" if under_no_grad else ""),
            "remove the detach/.data/.item()/no_grad between them and the loss, or freeze them",
        )
    elif beginning:
        yield Finding(
            RULE,
            Level.FAIL,
            f"no parameter of {root} ever gets a gradient",
            f"{len(without)} parameters ran and are in the optimizer: {named(without)}",
            "remove the detach/.data/.item()/no_grad between the model and the loss",
        )
    else:
        yield Finding(
            RULE,
            Level.NOTE,
            f"{len(without)} parameters of {root} never get a gradient",
            f"they ran, but nothing in the loss depends on them: {named(without)}",
            "use them in the loss, or remove or freeze them",
        )
