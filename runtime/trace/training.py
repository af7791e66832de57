"""Backward passes, optimizer steps, and what became of each parameter."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainlint.runtime.trace.source import Place


@dataclass
class ParamFacts:
    """One parameter: who owns it, who updates it, and what became of its gradients."""

    name: str
    shape: list[int]
    numel: int
    dtype: str
    kind: str = "weight"
    root: str = ""
    module: str = ""
    order: int | None = None
    requires_grad: bool = True
    registered: bool = True
    ran_with_grad: bool = False
    ran_without_grad: bool = False
    alive: bool = True
    moved_by_hand: bool = False
    optimizers: list[int] = field(default_factory=list)
    backwards: int = 0
    steps: int = 0
    with_grad: int = 0
    zero_grad: int = 0
    stale: int = 0
    changed: int = 0
    frozen_but_changed: int = 0
    lost: list[float] = field(default_factory=list)
    grad_norm: list[float] = field(default_factory=list)
    weight_norm: list[float] = field(default_factory=list)
    update_norm: list[float] = field(default_factory=list)


@dataclass
class GroupFacts:
    """One parameter group as the optimizer holds it."""

    lr: float
    weight_decay: float
    params: list[int]


@dataclass
class OptimizerFacts:
    """One optimizer, from its construction to the end of the run."""

    name: str
    place: Place | None
    groups: list[GroupFacts]
    steps: int = 0
    attempts: int = 0


@dataclass
class SchedulerFacts:
    """One learning rate scheduler."""

    name: str
    optimizer: int | None
    place: Place | None
    horizon: int | None
    steps: int = 0
    steps_before_end: int = 0


@dataclass
class Step:
    """One ``optimizer.step()``."""

    optimizer: int
    own: int
    lap: int
    place: Place | None
    closure: bool
    lrs: list[float]
    total: int
    with_grad: int = 0
    zero_grad: int = 0
    stale: int = 0
    changed: int = 0
    cleared: bool = False
    discarded_backwards: int = 0
    backwards: int = 0
    nonfinite_grads: int = 0
    first_nonfinite: str = ""
    grad_norm: float = 0.0
    update_norm: float = 0.0
    weight_norm: float = 0.0
    loss: float | None = None
    seconds: float = 0.0
    data_wait: float = 0.0
    live_losses: int = 0
    memory: int = 0
    syncs: int | None = None


@dataclass
class Backward:
    """One outermost ``backward()``."""

    place: Place | None
    step: int
    value: float | None
    retain_graph: bool = False
    batch_axes: list[list[int]] = field(default_factory=list)
    graph: list[str] = field(default_factory=list)


@dataclass
class Event:
    """One call that training protocols care about, in order."""

    kind: str
    step: int
    lap: int
    subject: int | None = None
    place: Place | None = None
    detail: str = ""
