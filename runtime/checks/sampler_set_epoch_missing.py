"""A DistributedSampler yields the same order in two epochs.

It shuffles by its epoch number, which only ``set_epoch`` changes.

Fix: ``sampler.set_epoch(epoch)`` at the start of each epoch.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "sampler-set-epoch-missing"


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for two training passes in the same shuffled order."""
    passes = [p for p in evidence.trace.passes if p.distributed_shuffle and p.backwards]
    if len(passes) < 2:
        reason = "no two training passes with a shuffling DistributedSampler were seen"
        yield NotChecked(RULE, reason)
        return
    for loader in {p.loader for p in passes}:
        own = [p for p in passes if p.loader == loader]
        if len(own) > 1 and len({p.epoch_order for p in own}) == 1:
            yield Finding(
                RULE,
                Level.FAIL,
                "every epoch has the same order",
                f"{len(own)} passes drew the same permutation; the sampler's epoch stayed "
                f"{own[0].sampler_epoch}",
                "call sampler.set_epoch(epoch) before each pass",
                own[1].place,
            )
