"""One child run as a whole."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from trainlint.runtime.trace.data import LoaderPass, Overlap
from trainlint.runtime.trace.forward import (
    ActivationFacts,
    DropoutCall,
    LossCall,
    ModuleFacts,
    RootCall,
    WeightHistogram,
)
from trainlint.runtime.trace.ranks import CollectiveCall
from trainlint.runtime.trace.source import Place
from trainlint.runtime.trace.start import Overwritten
from trainlint.runtime.trace.state import (
    Alias,
    BadOperation,
    ExtraForward,
    MemoryFacts,
    RetainedGraph,
    SavedState,
)
from trainlint.runtime.trace.training import (
    Backward,
    Event,
    OptimizerFacts,
    ParamFacts,
    SchedulerFacts,
    Step,
)


@dataclass
class Ending:
    """How the child ended; ``at`` is in seconds since 1970, to compare ranks."""

    kind: str = "running"
    detail: str = ""
    traceback: str = ""
    place: Place | None = None
    at: float = field(default_factory=time.time)


@dataclass
class Trace:
    """Everything that one child run recorded."""

    phase: str = "observe"
    script: str = ""
    torch: str = ""
    device: str = "cpu"
    rank: int = 0
    world: int = 1
    params: list[ParamFacts] = field(default_factory=list)
    modules: list[ModuleFacts] = field(default_factory=list)
    optimizers: list[OptimizerFacts] = field(default_factory=list)
    schedulers: list[SchedulerFacts] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    backwards: list[Backward] = field(default_factory=list)
    calls: list[RootCall] = field(default_factory=list)
    losses: list[LossCall] = field(default_factory=list)
    dropouts: list[DropoutCall] = field(default_factory=list)
    passes: list[LoaderPass] = field(default_factory=list)
    overlaps: list[Overlap] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    activations: list[ActivationFacts] = field(default_factory=list)
    weight_grads: list[WeightHistogram] = field(default_factory=list)
    saves: list[SavedState] = field(default_factory=list)
    aliases: list[Alias] = field(default_factory=list)
    retained: list[RetainedGraph] = field(default_factory=list)
    extra: ExtraForward | None = None
    bad: BadOperation | None = None
    memory: MemoryFacts = field(default_factory=MemoryFacts)
    overwritten: list[Overwritten] = field(default_factory=list)
    collectives: list[CollectiveCall] = field(default_factory=list)
    fingerprints: list[list[float]] = field(default_factory=list)
    wrapped: list[str] = field(default_factory=list)
    wrapper_calls: int = 0
    inner_calls: int = 0
    inner_place: Place | None = None
    group_initialised: bool = False
    loaded_weights: bool = False
    held: str = ""
    # In the fixed-batch phase: buffers that change with the samples that went by.
    own_state: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    redirected: list[str] = field(default_factory=list)
    seconds: float = 0.0
    startup: float = 0.0
    instrument_errors: list[str] = field(default_factory=list)
    ending: Ending = field(default_factory=Ending)
