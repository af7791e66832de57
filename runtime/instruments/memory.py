"""Memory by what holds it, and host-device synchronisations."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import torch

from trainlint.runtime.instruments.book import ParamBook
from trainlint.runtime.instruments.optimizers import Optimizers
from trainlint.runtime.patches import Patches
from trainlint.runtime.recorder import Recorder
from trainlint.runtime.trace import Step


class Memory:
    """Reads what the allocator and the tensors say; allocates nothing."""

    def __init__(self, recorder: Recorder, book: ParamBook, optimizers: Optimizers) -> None:
        self.recorder = recorder
        self.book = book
        self.optimizers = optimizers
        self._syncs = 0
        self._cuda = False
        optimizers.on_step.append(self._step)

    def install(self, patches: Patches) -> None:
        """On CUDA, have torch warn at each synchronisation, and count the warnings."""
        self._cuda = torch.cuda.is_available()
        if not self._cuda:
            return
        shown = warnings.showwarning

        def show(message: Any, *args: Any, **kwargs: Any) -> None:
            if "synchronizing CUDA operation" in str(message):
                self._syncs += not self.recorder.busy
            else:
                shown(message, *args, **kwargs)

        patches.replace(warnings, "showwarning", show)
        warnings.filterwarnings("always", message=".*synchronizing CUDA operation.*")
        torch.cuda.set_sync_debug_mode("warn")
        patches.later(lambda: torch.cuda.set_sync_debug_mode("default"))

    def _step(self, step: Step) -> None:
        facts = self.recorder.trace.memory
        if self._cuda:
            step.syncs, self._syncs = self._syncs, 0
            step.memory = torch.cuda.memory_allocated()
            facts.peak = torch.cuda.max_memory_allocated()
            facts.capacity = torch.cuda.get_device_properties(0).total_memory
            facts.device = torch.cuda.get_device_name(0)
        else:
            step.memory = resident_bytes()
            facts.peak = max(facts.peak, step.memory)
        params = [p for _, p in self.book.live()]
        facts.weights = sum(_bytes(p) for p in params)
        facts.gradients = max(facts.gradients, sum(_bytes(p.grad) for p in params))
        facts.optimizer = sum(self._state_bytes(o) for _, o in self.optimizers.all())
        held = facts.weights + facts.gradients + facts.optimizer
        facts.activations = max(0, facts.peak - held) if self._cuda else 0

    def _state_bytes(self, optimizer: torch.optim.Optimizer) -> int:
        return sum(
            _bytes(value)
            for state in optimizer.state.values()
            if isinstance(state, dict)
            for value in state.values()
            if isinstance(value, torch.Tensor)
        )


def _bytes(tensor: torch.Tensor | None) -> int:
    return 0 if tensor is None else tensor.numel() * tensor.element_size()


def resident_bytes() -> int:
    """The resident memory of this process, where the system says it; otherwise 0."""
    if not sys.platform.startswith("linux"):
        return 0
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[1]) * 4096
