"""Several ranks: the DDP wrapper, and fingerprints of the parameters for comparison."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from trainlint.runtime.instruments.book import ParamBook
from trainlint.runtime.instruments.modules import Modules
from trainlint.runtime.instruments.optimizers import Optimizers
from trainlint.runtime.instruments.tensors import plain
from trainlint.runtime.patches import Patches
from trainlint.runtime.recorder import Recorder, guarded
from trainlint.runtime.trace import Step

# Steps after which the parameters of all ranks are compared.
COMPARED_STEPS = (0, 1, 2, 3, 5, 8)
MOST_COMPARED = 400


class Distributed:
    """Sees whether the wrapper is used; leaves comparing to whoever has all the traces."""

    def __init__(
        self, recorder: Recorder, book: ParamBook, modules: Modules, optimizers: Optimizers
    ) -> None:
        self.recorder = recorder
        self.book = book
        self.modules = modules
        self._inner: dict[int, str] = {}
        modules.on_root_start.append(self._root)
        optimizers.on_step.append(self._step)

    def install(self, patches: Patches) -> None:
        """Wrap the construction of DDP."""
        patches.wrap(DistributedDataParallel, "__init__", self._make)

    def _make(self, original: Any) -> Any:
        def init(wrapper: Any, module: Any, *args: Any, **kwargs: Any) -> None:
            original(wrapper, module, *args, **kwargs)
            self._wrapped(module)

        return init

    @guarded
    def _wrapped(self, module: Any) -> None:
        self._inner[id(module)] = type(module).__name__
        self.recorder.trace.wrapped.append(type(module).__name__)
        self.recorder.event("ddp", detail=type(module).__name__)

    def _root(self, module: torch.nn.Module, inputs: Any) -> None:
        trace = self.recorder.trace
        if isinstance(module, DistributedDataParallel):
            trace.wrapper_calls += 1
        elif id(module) in self._inner and torch.is_grad_enabled() and module.training:
            trace.inner_calls += 1
            call = self.modules.call
            trace.inner_place = trace.inner_place or (call.place if call else None)

    def _step(self, step: Step) -> None:
        if not torch.distributed.is_available() or not torch.distributed.is_initialized():
            return
        trace = self.recorder.trace
        trace.group_initialised = True
        trace.world = torch.distributed.get_world_size()
        trace.rank = torch.distributed.get_rank()
        if trace.world > 1 and self.recorder.step in COMPARED_STEPS:
            params = [p for _, p in self.book.live()[:MOST_COMPARED]]
            sums = [plain(p).double().sum() for p in params]
            trace.fingerprints.append(torch.stack([s.cpu() for s in sums]).tolist())
