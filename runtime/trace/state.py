"""Checkpoints, the script's variables, memory, and what the extra looks showed."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainlint.runtime.trace.source import Place


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
    frozen_by_train: list[str] | None = None
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
    """Bytes at the peak, by what holds them.

    ``activations`` is the rest of the peak on a GPU. On a CPU the peak is that of the process, and
    activations are the outputs of the layers that a backward needs: at least. ``batch`` is the
    leading dimension of the inputs that they belong to; 0 where there was none.
    """

    weights: int = 0
    gradients: int = 0
    optimizer: int = 0
    activations: int = 0
    peak: int = 0
    batch: int = 0
    device: str = "cpu"
    capacity: int = 0
