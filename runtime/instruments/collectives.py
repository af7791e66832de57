"""Collective calls of this rank, in order, with the sizes that the other ranks must agree on."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from trainlint.runtime.patches import Patches
from trainlint.runtime.places import user_place
from trainlint.runtime.recorder import Recorder, guarded
from trainlint.runtime.trace import CollectiveCall

MOST_CALLS = 2000
# A call of a shape that was not seen before is written down before it is made, since it may hang
# or end the process; a script whose sizes always change is trusted after so many.
MOST_WRITTEN = 100
# Collectives, and where the tensor that all ranks must size alike stands among the arguments.
_SIZED = {
    "all_reduce": 0,
    "broadcast": 0,
    "reduce": 0,
    "all_gather": 1,
    "all_gather_into_tensor": 1,
    "reduce_scatter_tensor": 0,
    "barrier": None,
}


class Collectives:
    """Wraps the collectives of ``torch.distributed``; those that DDP makes in C++ are not seen."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._depth = 0
        self._seen: set[str] = set()

    def install(self, patches: Patches) -> None:
        """Wrap each collective wherever it can be called from."""
        if not dist.is_available():
            return
        owners = (dist, dist.distributed_c10d)
        for owner in owners:
            for name, position in _SIZED.items():
                patches.wrap(owner, name, self._make(name, position))
            patches.wrap(owner, "all_to_all_single", self._make("all_to_all_single", None))

    def _make(self, name: str, position: int | None) -> Any:
        def make(original: Any) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                if self._depth == 0 and kwargs.get("group") in (None, dist.group.WORLD):
                    self._note(name, position, args, kwargs)
                self._depth += 1
                try:
                    return original(*args, **kwargs)
                finally:
                    self._depth -= 1

            return call

        return make

    @guarded
    def _note(self, name: str, position: int | None, args: Any, kwargs: Any) -> None:
        calls = self.recorder.trace.collectives
        if len(calls) >= MOST_CALLS or not dist.is_initialized():
            return
        record = CollectiveCall(name, user_place(), self.recorder.step)
        if name == "all_to_all_single":
            record.received, record.sent = _splits(args, kwargs)
        elif position is not None and position < len(args):
            record.size = args[position].numel() if torch.is_tensor(args[position]) else None
        calls.append(record)
        shape = f"{name} {record.size} {record.sent} {record.received} {record.place}"
        if shape not in self._seen and len(self._seen) < MOST_WRITTEN:
            self._seen.add(shape)
            self.recorder.flush(force=True)


def _splits(args: Any, kwargs: Any) -> tuple[list[int], list[int]]:
    """How many rows are received from, and sent to, each rank."""
    names = ("output", "input", "output_split_sizes", "input_split_sizes")
    named = dict(zip(names, args, strict=False))
    named |= kwargs
    world = dist.get_world_size()
    found = []
    for tensor, splits in (("output", "output_split_sizes"), ("input", "input_split_sizes")):
        given = named.get(splits)
        even = [named[tensor].shape[0] // world] * world
        found.append([int(size) for size in given] if given else even)
    return found[0], found[1]
