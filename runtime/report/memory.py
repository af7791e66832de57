"""Where the memory goes, and which batch would fit."""

from __future__ import annotations

from trainlint.runtime.trace import MemoryFacts

# Left free for fragmentation, and for what the measured steps did not show.
RESERVE = 0.1
# A batch that is this many times the script's is no advice.
FAR = 1000
_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def memory_parts(memory: MemoryFacts) -> dict[str, int]:
    """Bytes by what holds them."""
    return {
        "weights": memory.weights,
        "gradients": memory.gradients,
        "optimizer state": memory.optimizer,
        "activations": memory.activations,
    }


def batch_that_fits(memory: MemoryFacts) -> int | None:
    """About the largest batch (leading dimension of the inputs) for the device's memory.

    All but the activations stays as it is, the activations grow with the batch. ``None`` where
    something was not measured. On a CPU, where activations are a lower bound, so is what they need.
    """
    if not (memory.batch and memory.activations and memory.capacity and memory.peak):
        return None
    a_sample = memory.activations / memory.batch
    others = memory.peak - min(memory.activations, memory.peak)
    fits = ((1 - RESERVE) * memory.capacity - others) / a_sample
    return _two_digits(int(fits)) if fits >= 1 else None


def _two_digits(number: int) -> int:
    zeros = max(0, len(str(number)) - 2)
    return int(str(number)[:2] + "0" * zeros)


def size(count: int) -> str:
    """A number of bytes for people."""
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"


def memory_line(memory: MemoryFacts) -> str:
    """One line for the terminal; empty where nothing was measured."""
    if not memory.weights:
        return ""
    parts = ", ".join(f"{name} {size(count)}" for name, count in memory_parts(memory).items())
    line = f"{parts} at batch {memory.batch}" if memory.batch else parts
    line += f"; peak {size(memory.peak)}" if memory.peak else ""
    fits = batch_that_fits(memory)
    if fits is not None and fits < FAR * memory.batch:
        line += f"; about batch {fits:,} would fit in {size(memory.capacity)}"
    return line
