"""What the loaders delivered."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainlint.runtime.trace.source import Place


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
