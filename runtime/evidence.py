"""Everything the checks may look at: the traces of one probe."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainlint.runtime.trace import ParamFacts, RootCall, Step, Trace


@dataclass
class Evidence:
    """The traces of the phases that ran, and why others did not."""

    script: str = ""
    folder: str = ""
    observe: Trace | None = None
    fixed: Trace | None = None
    zeroed: Trace | None = None
    replay: Trace | None = None
    ranks: list[Trace] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    seconds: float = 0.0

    @property
    def trace(self) -> Trace:
        """The observed run; an empty one where there was none."""
        return self.observe if self.observe is not None else Trace()

    def own_steps(self, optimizer: int) -> list[Step]:
        """The steps of one optimizer."""
        return [s for s in self.trace.steps if s.optimizer == optimizer]

    def training_calls(self) -> list[RootCall]:
        """Calls of outermost modules that a backward reached."""
        return [c for c in self.trace.calls if c.grad and c.reached]

    def owned(self, optimizer: int) -> list[ParamFacts]:
        """The parameters of one optimizer."""
        return [p for p in self.trace.params if optimizer in p.optimizers]
