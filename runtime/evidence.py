"""Everything the checks may look at: the traces of one probe."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainlint.runtime.trace import Ending, ParamFacts, RootCall, Step, Trace

# Endings that are the user's or the machine's fault, not a verdict.
BROKEN = ("crashed", "hung", "killed", "interrupted")
# What a rank says when another one has gone away; that other one is the cause.
_PEER_IS_GONE = ("onnection closed by peer", "onnection reset by peer", "roken pipe", "NCCL")


@dataclass
class Evidence:
    """The traces of the phases that ran, and why others did not."""

    script: str = ""
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

    @property
    def no_step(self) -> str:
        """What is said of a script in which no optimizer stepped."""
        passes = len(self.trace.backwards)
        if passes:
            return f"no optimizer step was seen, only backward passes ({passes})"
        return (
            "no optimizer step and no backward pass was seen "
            "(torch.func, and programs that the script runs, are not followed)"
        )

    @property
    def ending(self) -> tuple[int, Ending]:
        """The rank that broke first, if any did, and its end; otherwise this rank's own."""
        own = self.trace
        by_time = sorted(self.ranks or [own], key=lambda trace: trace.ending.at)
        for position, trace in enumerate(by_time):
            echo = position > 0 and any(word in trace.ending.detail for word in _PEER_IS_GONE)
            if trace.ending.kind in BROKEN and not echo:
                return trace.rank, trace.ending
        if own.ending.kind in BROKEN:
            return by_time[0].rank, by_time[0].ending
        return own.rank, own.ending

    def own_steps(self, optimizer: int) -> list[Step]:
        """The steps of one optimizer."""
        return [s for s in self.trace.steps if s.optimizer == optimizer]

    def training_calls(self) -> list[RootCall]:
        """Calls of outermost modules that a backward reached."""
        return [c for c in self.trace.calls if c.grad and c.reached]

    def owned(self, optimizer: int) -> list[ParamFacts]:
        """The parameters of one optimizer."""
        return [p for p in self.trace.params if optimizer in p.optimizers]
