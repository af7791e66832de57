"""DataLoader iterations: order, workers, samples, and ending a training epoch early in lap 1."""

from __future__ import annotations

import hashlib
import sys
import time
import weakref
from collections.abc import Callable
from opcode import opname
from types import FrameType
from typing import Any

import torch
from torch.utils.data import DataLoader, Subset
from torch.utils.data.dataloader import _BaseDataLoaderIter

from trainlint.runtime.instruments.modules import Modules
from trainlint.runtime.instruments.optimizers import Optimizers
from trainlint.runtime.instruments.tensors import batched_in, fingerprint, tensors_in
from trainlint.runtime.patches import Patches
from trainlint.runtime.places import is_user_file
from trainlint.runtime.recorder import Recorder, guarded
from trainlint.runtime.trace import LoaderPass, Overlap, Step

# Batches whose samples are fingerprinted, per pass, and samples per batch.
LOOKED_BATCHES = 8
LOOKED_ROWS = 64
# In lap 1, an evaluation pass has shown what it does after this many batches.
EVAL_BATCHES = 3
MOST_PASSES = 500
# Subsets larger than this are compared by a sample of their indices.
MOST_INDICES = 200_000


class Loaders:
    """Follows each pass over each DataLoader."""

    def __init__(self, recorder: Recorder, modules: Modules, optimizers: Optimizers) -> None:
        self.recorder = recorder
        self.modules = modules
        self.hold: Callable[[LoaderPass, Callable[[], Any]], Any] | None = None
        self._loaders: dict[int, tuple[int, weakref.ref[Any]]] = {}
        self._datasets: dict[int, int] = {}
        self._kept: list[Any] = []
        self._passes: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._drawn_since: set[int] = set()
        self._waited = 0.0
        optimizers.on_step.append(self._step_ends)
        recorder.before_stop.append(self._compare_subsets)

    def install(self, patches: Patches) -> None:
        """Wrap iteration."""
        patches.wrap(DataLoader, "__iter__", self._make_iter)
        patches.wrap(_BaseDataLoaderIter, "__next__", self._make_next)

    def note_backward(self) -> None:
        """A backward uses the batches that were drawn since the last one, of every loader."""
        for position in self._drawn_since:
            self.recorder.trace.passes[position].backwards += 1
        self._drawn_since.clear()

    def _make_iter(self, original: Any) -> Any:
        def iterate(loader: Any) -> Any:
            iterator = original(loader)
            if self.recorder.active():
                self._begin(loader, iterator)
            return iterator

        return iterate

    def _make_next(self, original: Any) -> Any:
        def following(iterator: Any) -> Any:
            if not self.recorder.active() or iterator not in self._passes:
                return original(iterator)
            self.recorder.stop_if_done()
            facts = self.recorder.trace.passes[self._passes[iterator]]
            if self._cut(facts) and ends_are_expected(sys._getframe(1)):
                facts.cut = True
                self._drawn_since.discard(self._passes[iterator])
                raise StopIteration
            return self._draw(original, iterator, facts)

        return following

    def _draw(self, original: Any, iterator: Any, facts: LoaderPass) -> Any:
        started = time.monotonic()
        try:
            if self.hold is None:
                batch = original(iterator)
            else:
                batch = self.hold(facts, lambda: original(iterator))
        except StopIteration:
            self._ended(self._passes[iterator])
            raise
        self._waited += time.monotonic() - started
        self._drawn(self._passes[iterator], batch)
        return batch

    def _cut(self, facts: LoaderPass) -> bool:
        recorder = self.recorder
        if recorder.spec.phase != "observe":
            return recorder.step > 0 and facts.backwards == 0 and facts.batches >= 1
        if recorder.lap == 0:
            return False
        if facts.backwards:
            return facts.lap == 0
        return facts.lap == 1 and facts.batches >= EVAL_BATCHES

    @guarded
    def _begin(self, loader: Any, iterator: Any) -> None:
        trace = self.recorder.trace
        if len(trace.passes) >= MOST_PASSES:
            return
        place = self.recorder.event("loader-start")
        dataset = loader.dataset
        facts = LoaderPass(
            self._loader_index(loader),
            place,
            self._dataset_index(dataset),
            type(dataset).__name__,
            self.recorder.step,
            self.recorder.lap,
            sampler=type(loader.sampler).__name__,
            batch_size=loader.batch_size,
            length=_length(loader),
            workers=loader.num_workers,
        )
        self._note_distributed(loader, facts)
        trace.passes.append(facts)
        self._passes[iterator] = len(trace.passes) - 1

    def _loader_index(self, loader: Any) -> int:
        known = self._loaders.get(id(loader))
        if known is None or known[1]() is not loader:
            known = (len(self._loaders), weakref.ref(loader))
            self._loaders[id(loader)] = known
        return known[0]

    def _dataset_index(self, dataset: Any) -> int:
        if id(dataset) not in self._datasets:
            self._datasets[id(dataset)] = len(self._datasets)
            self._kept.append(dataset)
        return self._datasets[id(dataset)]

    def _note_distributed(self, loader: Any, facts: LoaderPass) -> None:
        sampler = loader.sampler
        if not isinstance(sampler, torch.utils.data.distributed.DistributedSampler):
            return
        facts.distributed_shuffle = bool(sampler.shuffle)
        facts.sampler_epoch = int(sampler.epoch)
        order = ",".join(str(i) for i in sampler)
        facts.epoch_order = hashlib.blake2b(order.encode(), digest_size=8).hexdigest()

    @guarded
    def _ended(self, position: int) -> None:
        self.recorder.event("loader-end", self.recorder.trace.passes[position].loader)
        self._drawn_since.discard(position)
        self.modules.current_pass = None

    @guarded
    def _drawn(self, position: int, batch: Any) -> None:
        facts = self.recorder.trace.passes[position]
        facts.batches += 1
        self.modules.current_pass = position
        self._drawn_since.add(position)
        if facts.batches > LOOKED_BATCHES:
            return
        tensors = [t for t in tensors_in(batch) if t.dim() >= 1 and t.numel()]
        batched = batched_in(batch, facts.batch_size)
        facts.leading.append([t.shape[0] for t in batched if t.dim() and t.numel()])
        if not tensors:
            return
        largest = max(tensors, key=lambda t: t.numel())
        if largest.shape[0] > 1 or largest.dim() > 1:
            facts.rows.append([fingerprint(row) for row in largest[:LOOKED_ROWS]])
        self._note_inputs(facts, largest)
        for label in tensors:
            if label.dim() == 1 and label is not largest and not label.is_floating_point():
                for value in label.tolist():
                    facts.labels[str(value)] = facts.labels.get(str(value), 0) + 1

    def _note_inputs(self, facts: LoaderPass, tensor: torch.Tensor) -> None:
        if facts.inputs or tensor.is_complex():
            return
        data = tensor.float()
        facts.inputs = {
            "low": float(data.min()),
            "high": float(data.max()),
            "mean": float(data.mean()),
            "std": float(data.std()) if data.numel() > 1 else 0.0,
            "dims": float(tensor.dim()),
            "float": float(tensor.is_floating_point()),
        }

    def _step_ends(self, step: Step) -> None:
        step.data_wait, self._waited = self._waited, 0.0

    def _compare_subsets(self) -> None:
        subsets = [(self._datasets[id(d)], d) for d in self._kept if isinstance(d, Subset)]
        for position, (first, one) in enumerate(subsets):
            for second, other in subsets[position + 1 :]:
                if one.dataset is not other.dataset:
                    continue
                left, right = (set(list(d.indices)[:MOST_INDICES]) for d in (one, other))
                shared = len(left & right)
                overlap = Overlap(first, second, shared, min(len(left), len(right)))
                self.recorder.trace.overlaps.append(overlap)


def ends_are_expected(caller: FrameType) -> bool:
    """Whether a loader may end early: a script that counts batches itself and calls ``next`` does
    not expect it, a ``for`` loop does, and so do libraries.
    """
    looping = opname[caller.f_code.co_code[caller.f_lasti]] == "FOR_ITER"
    return looping or not is_user_file(caller.f_code.co_filename)


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:
        return None
