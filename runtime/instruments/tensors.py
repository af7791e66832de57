"""Small tensor questions that several instruments ask."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

# Statistics of large tensors are taken on an evenly spaced sample of about this many elements.
SAMPLE = 65536


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The local tensor behind a distributed one, or the values of a nested one; detached."""
    if tensor.is_nested:
        return tensor.detach().values()
    local = getattr(tensor, "_local_tensor", tensor)
    return local.detach() if isinstance(local, torch.Tensor) else tensor.detach()


def sizes(tensor: torch.Tensor) -> list[int]:
    """The shape; a dimension along which the parts of a nested tensor differ counts as 0."""
    if not tensor.is_nested:
        return list(tensor.shape)
    if tensor.layout != torch.jagged:
        return [tensor.size(0), *[0] * (tensor.dim() - 1)]
    return [size if type(size) is int else 0 for size in tensor.shape]


def sample(tensor: torch.Tensor, size: int = SAMPLE) -> torch.Tensor:
    """An evenly spaced flat sample."""
    flat = plain(tensor).reshape(-1)
    stride = max(1, flat.numel() // size)
    # An odd stride does not keep hitting the same column of a matrix of even width.
    return flat[:: stride | 1] if stride > 1 else flat


def tensors_in(value: Any, depth: int = 3) -> Iterator[torch.Tensor]:
    """The tensors of a nested batch or output."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth == 0 or isinstance(value, (str, bytes)):
        return
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item, depth - 1)
    elif isinstance(value, Sequence):
        for item in value:
            yield from tensors_in(item, depth - 1)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from tensors_in(getattr(value, name, None), depth - 1)


def batched_in(batch: Any, size: int | None, depth: int = 3) -> Iterator[torch.Tensor]:
    """The tensors of a batch that hold all of its samples, not one of a list of single samples."""
    if isinstance(batch, torch.Tensor):
        yield batch
    elif depth and isinstance(batch, Mapping):
        for item in batch.values():
            yield from batched_in(item, size, depth - 1)
    elif depth and isinstance(batch, (list, tuple)) and len(batch) != size:
        for item in batch:
            yield from batched_in(item, size, depth - 1)


def map_tensors(value: Any, change: Any, depth: int = 4) -> Any:
    """A nested batch with every tensor replaced by ``change(tensor)``."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if depth == 0:
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_tensors(item, change, depth - 1) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(map_tensors(item, change, depth - 1) for item in value)
    if isinstance(value, Mapping):
        changed = {key: map_tensors(item, change, depth - 1) for key, item in value.items()}
        if type(value) is dict:
            return changed
        try:
            return type(value)(changed)  # type: ignore[call-arg]
        except TypeError:
            return changed
    return value


def norms(tensors: list[torch.Tensor]) -> list[float]:
    """The 2-norm of each tensor, in one transfer per device."""
    found: list[float] = [0.0] * len(tensors)
    by_kind: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for position, tensor in enumerate(tensors):
        if tensor.is_sparse:
            tensors[position] = tensor.coalesce().values()
        if tensors[position].numel():
            by_kind.setdefault((tensor.device, tensor.dtype), []).append(position)
    for (_, dtype), positions in by_kind.items():
        group = [tensors[i] for i in positions]
        results: Any
        if dtype.is_floating_point:
            results = torch._foreach_norm(group)
        else:
            results = [t.abs().float().norm() for t in group]
        values = torch.stack([r.float() for r in results]).tolist()
        for position, value in zip(positions, values, strict=True):
            found[position] = value
    return found


def fingerprint(row: torch.Tensor) -> str:
    """A short digest of one sample; empty for a constant one, which tells nothing."""
    values = sample(row, 4096).cpu().contiguous()
    if values.numel() < 2 or bool((values == values[0]).all()):
        return ""
    raw = values.view(torch.uint8) if values.dtype != torch.bool else values.to(torch.uint8)
    return hashlib.blake2b(raw.numpy().tobytes(), digest_size=8).hexdigest()


def histogram(values: torch.Tensor, bins: int = 50) -> tuple[list[float], list[float]]:
    """Density per bin and bin edges."""
    data = sample(values).float()
    data = data[torch.isfinite(data)]
    if data.numel() < 2:
        return [], []
    low, high = float(data.min()), float(data.max())
    if low == high:
        return [], []
    counts = torch.histc(data.cpu(), bins, low, high)
    width = (high - low) / bins
    edges = [low + width * i for i in range(bins + 1)]
    return (counts / (counts.sum() * width)).tolist(), edges
