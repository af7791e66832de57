"""Collective calls of this rank, in order, with the sizes that the other ranks must agree on."""

from __future__ import annotations

import inspect
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
# Collectives, and the argument that all ranks must size alike.
_SIZED = {
    "all_reduce": "tensor",
    "broadcast": "tensor",
    "reduce": "tensor",
    "all_gather": "tensor",
    "all_gather_into_tensor": "input_tensor",
    "reduce_scatter_tensor": "output",
    "barrier": "",
    "all_to_all_single": "",
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
        for owner in (dist, dist.distributed_c10d):
            for name, sized in _SIZED.items():
                patches.wrap(owner, name, self._make(name, sized))

    def _make(self, name: str, sized: str) -> Any:
        def make(original: Any) -> Any:
            signature = inspect.signature(original)

            def call(*args: Any, **kwargs: Any) -> Any:
                if self._depth == 0:
                    self._note(name, sized, signature, args, kwargs)
                self._depth += 1
                try:
                    return original(*args, **kwargs)
                finally:
                    self._depth -= 1

            return call

        return make

    @guarded
    def _note(
        self, name: str, sized: str, signature: inspect.Signature, args: Any, kwargs: Any
    ) -> None:
        calls = self.recorder.trace.collectives
        given = signature.bind(*args, **kwargs).arguments
        everyone = given.get("group") in (None, dist.group.WORLD)
        if not everyone or len(calls) >= MOST_CALLS or not dist.is_initialized():
            return
        record = CollectiveCall(name, user_place(), self.recorder.step)
        if name == "all_to_all_single":
            record.received = _rows(given["output"], given.get("output_split_sizes"))
            record.sent = _rows(given["input"], given.get("input_split_sizes"))
        elif sized:
            record.size = given[sized].numel()
        calls.append(record)
        shape = f"{name} {record.size} {record.sent} {record.received} {record.place}"
        if shape not in self._seen and len(self._seen) < MOST_WRITTEN:
            self._seen.add(shape)
            self.recorder.flush(force=True)


def _rows(tensor: torch.Tensor, splits: list[int] | None) -> list[int]:
    """How many rows go to, or come from, each rank; evenly many where nothing else is said."""
    world = dist.get_world_size()
    return [int(size) for size in splits] if splits else [tensor.shape[0] // world] * world
