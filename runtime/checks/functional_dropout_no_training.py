"""``F.dropout`` without ``training=self.training`` stays on in evaluation.

Its default is ``training=True``. If True was written out, it may be Monte Carlo dropout on purpose,
and is a warning.

Fix: ``F.dropout(x, p, training=self.training)``, or use ``nn.Dropout``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "functional-dropout-no-training"


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL for a dropout that was on inside a module in evaluation mode."""
    trace = evidence.trace
    extra = trace.extra
    looked = extra is not None and extra.repeatable is not None
    if not looked and not any(not c.training for c in trace.calls):
        yield NotChecked(RULE, "no forward in evaluation mode was seen")
        return
    for call in trace.dropouts:
        yield Finding(
            RULE,
            Level.WARN if call.explicit else Level.FAIL,
            f"functional dropout stays on in evaluation mode of {call.module}",
            f"F.{call.function} dropped with p={call.p:g} while the module was in evaluation mode",
            "drop only if self.training, or use nn.Dropout",
            call.place,
        )
