"""Module calls, their outputs, and what the losses were given."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainlint.runtime.trace.source import Place


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
    # What a layer was given that takes (sequence, batch, features).
    sequence_first: list[int] = field(default_factory=list)


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
class LossCall:
    """One call of a loss function, or of softmax, with what it was given.

    ``value`` is what a loss returned, where that was one number.
    """

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
    value: float | None = None


@dataclass
class DropoutCall:
    """A functional dropout that was on inside a module in evaluation mode."""

    place: Place | None
    p: float
    explicit: bool
    module: str
    function: str = "dropout"
    count: int = 1
