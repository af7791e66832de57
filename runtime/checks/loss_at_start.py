"""The first loss against what a model that knows nothing would give.

For a classifier that is the entropy of the labels, at most ``ln C``. Much more points to a bad
head, unnormalised inputs or shifted labels; much less to a leak. Clean programs lie between 0.96
and 1.42 times that value.

Fix: depends; look at the initial outputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainlint.runtime.checks._losses import NO_LOSS, training_losses
from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "loss-at-start"

# Clean programs measured: 0.957 to 1.42.
TOO_HIGH = 2.0
TOO_LOW = 0.5
# A step of a small model can have a lucky batch; the entropy of few labels is unreliable.
LEAST_TARGETS = 8


def check(evidence: Evidence) -> Iterator[Result]:
    """WARN for a first classification loss far from the uninformed one."""
    calls = [c for c in training_losses(evidence, "cross_entropy") if c.step == 0]
    value = calls[0].value if calls else None
    if value is None or not math.isfinite(value) or evidence.trace.loaded_weights:
        loaded = "the model starts from loaded weights"
        yield NotChecked(RULE, loaded if evidence.trace.loaded_weights else NO_LOSS)
        return
    call = calls[0]
    plain = call.options.get("reduction", "mean") == "mean" and not call.options.get("weighted")
    classes = call.classes or 0
    if len({str(c.place) for c in calls}) > 1 or not plain or classes < 2 or call.target is None:
        yield NotChecked(RULE, "the loss is not one plain mean cross entropy")
        return
    ratio = value / math.log(classes)
    targets = math.prod(call.target.shape)
    if call.target.ignored is None or targets < LEAST_TARGETS or TOO_LOW < ratio < TOO_HIGH:
        return
    entropy = call.options.get("entropy")
    if ratio <= TOO_LOW and isinstance(entropy, float) and value > TOO_LOW * entropy:
        return
    yield Finding(
        RULE,
        Level.WARN,
        f"the first loss is {ratio:.2g} times that of an uninformed model",
        f"loss {value:.4g}, ln {classes} = {math.log(classes):.4g}; clean programs start "
        "between 0.96 and 1.42 times that",
        "too high: check the initialisation of the last layer, input scale and labels; "
        "too low: check that the target is not among the inputs",
        call.place,
    )
