"""What one run of the script looked like: plain data, no tensors, safe to write as JSON.

Instruments fill it, checks read it. Every number is a Python number; every reference to another
record is its position in the list that holds it.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """One line of somebody's source."""

    file: str
    line: int
    text: str = ""
    function: str = ""


@dataclass
class TensorFacts:
    """What a loss saw in one of its arguments; ``None`` where it was not measured."""

    shape: list[int]
    dtype: str
    requires_grad: bool = False
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    row_sum_error: float | None = None
    row_exp_sum_error: float | None = None
    distinct: int | None = None
    ignored: float | None = None


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
class RootCall:
    """One call of an outermost module."""

    root: str
    uid: int
    place: Place | None
    step: int
    lap: int
    grad: bool
    training: bool
    loader: int | None
    output_grad: bool = False
    reached: bool = False
    averaging: bool = False
    dropout_on: int = 0
    dropout_off: int = 0
    norm_on: int = 0
    norm_off: int = 0
    autocast: bool = False
    low_precision: int = 0
    full_precision: int = 0
    first_off: str = ""
    first_on: str = ""
    shapes: list[list[int]] = field(default_factory=list)


@dataclass
class ModuleFacts:
    """One module that ran."""

    name: str
    cls: str
    root: str
    parameters: list[int] = field(default_factory=list)
    registered: bool = True
    instances: int = 1
    calls: int = 0
    place: Place | None = None
    fresh: bool = False


@dataclass
class ActivationFacts:
    """The output of one layer, over the steps at which it was measured."""

    name: str
    cls: str
    mean: list[float] = field(default_factory=list)
    std: list[float] = field(default_factory=list)
    peak: list[float] = field(default_factory=list)
    saturated: list[float] = field(default_factory=list)
    dead: float | None = None
    units: int = 0
    observations: int = 0
    values: list[float] = field(default_factory=list)
    edges: list[float] = field(default_factory=list)
    grad_values: list[float] = field(default_factory=list)
    grad_edges: list[float] = field(default_factory=list)
    grad_mean: float | None = None
    grad_std: float | None = None


@dataclass
class WeightHistogram:
    """The gradient of one weight matrix at one step."""

    name: str
    shape: list[int]
    mean: float
    std: float
    ratio: float
    values: list[float]
    edges: list[float]


@dataclass
class LossCall:
    """One call of a loss function, or of softmax, with what it was given."""

    function: str
    place: Place | None
    step: int
    grad: bool
    input: TensorFacts
    target: TensorFacts | None
    classes: int | None = None
    input_made_by: str = ""
    target_made_by: str = ""
    options: dict[str, float | str | None] = field(default_factory=dict)
    shift: dict[str, float] = field(default_factory=dict)


@dataclass
class DropoutCall:
    """A functional dropout that was on inside a module in evaluation mode."""

    place: Place | None
    p: float
    explicit: bool
    module: str
    count: int = 1


@dataclass
class LoaderPass:
    """One iteration over a DataLoader."""

    loader: int
    place: Place | None
    dataset: int
    dataset_name: str
    step: int
    lap: int
    epoch_order: str | None = None
    sampler_epoch: int | None = None
    sampler: str = ""
    distributed_shuffle: bool = False
    batch_size: int | None = None
    length: int | None = None
    workers: int = 0
    batches: int = 0
    backwards: int = 0
    cut: bool = False
    rows: list[list[str]] = field(default_factory=list)
    leading: list[list[int]] = field(default_factory=list)
    inputs: dict[str, float] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)


@dataclass
class Overlap:
    """Two datasets that select some of the same samples of one parent dataset."""

    first: int
    second: int
    shared: int
    size: int


@dataclass
class Event:
    """One call that training protocols care about, in order."""

    kind: str
    step: int
    lap: int
    subject: int | None = None
    place: Place | None = None
    detail: str = ""


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
class SavedState:
    """What one ``torch.save`` held, compared with the live objects at that moment."""

    place: Place | None
    path: str
    step: int
    model: str = ""
    keys: int = 0
    missing: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    equal: int = 0
    has: list[str] = field(default_factory=list)
    live: list[str] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)


@dataclass
class Alias:
    """A name that promises a copy but shares memory with the live weights."""

    name: str
    kind: str
    of: str
    place: Place | None


@dataclass
class RetainedGraph:
    """A variable of the script that holds a graph after its step is over."""

    name: str
    size: int
    place: Place | None


@dataclass
class ExtraForward:
    """What the extra forwards on a copy of the model showed."""

    model: str = ""
    place: Place | None = None
    repeatable: bool | None = None
    random_ops: list[str] = field(default_factory=list)
    has_dropout: bool = False
    mixing: float | None = None
    mixing_module: str = ""
    sequence_first_module: str = ""
    causal_leak: float | None = None
    token_inputs: bool = False
    output_shape: list[int] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)


@dataclass
class BadOperation:
    """The first operation whose output was not finite."""

    operation: str
    module: str
    place: Place | None
    step: int
    backward: bool
    inputs: list[str] = field(default_factory=list)


@dataclass
class MemoryFacts:
    """Bytes at the peak, by what holds them."""

    weights: int = 0
    gradients: int = 0
    optimizer: int = 0
    activations: int = 0
    peak: int = 0
    device: str = "cpu"
    capacity: int = 0


@dataclass
class Ending:
    """How the child ended."""

    kind: str = "running"
    detail: str = ""
    traceback: str = ""
    place: Place | None = None


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
    fingerprints: list[list[float]] = field(default_factory=list)
    wrapped: list[str] = field(default_factory=list)
    wrapper_calls: int = 0
    inner_calls: int = 0
    inner_place: Place | None = None
    group_initialised: bool = False
    loaded_weights: bool = False
    held: str = ""
    notes: list[str] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    redirected: list[str] = field(default_factory=list)
    seconds: float = 0.0
    startup: float = 0.0
    instrument_errors: list[str] = field(default_factory=list)
    ending: Ending = field(default_factory=Ending)


def to_json(trace: Trace) -> str:
    """The trace as one line of JSON (NaN and infinities as Python writes them)."""
    return json.dumps(dataclasses.asdict(trace))


def from_json(text: str) -> Trace:
    """The inverse of :func:`to_json`."""
    return typing.cast("Trace", _restore(Trace, json.loads(text)))


def _restore(kind: Any, data: Any) -> Any:
    if data is None:
        return None
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        members = [a for a in typing.get_args(kind) if a is not type(None)]
        return _restore(members[0], data)
    if origin is list:
        (inner,) = typing.get_args(kind)
        return [_restore(inner, item) for item in data]
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        known = {f.name for f in dataclasses.fields(kind)}
        return kind(**{k: _restore(hints[k], v) for k, v in data.items() if k in known})  # type: ignore[operator]
    return data


def finite(values: list[float]) -> list[float]:
    """The numbers of a series that are finite."""
    return [v for v in values if math.isfinite(v)]
