"""Memory by what holds it, and host-device synchronisations."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

import torch
from torch import nn

from trainlint.runtime.instruments.book import ParamBook
from trainlint.runtime.instruments.modules import Modules
from trainlint.runtime.instruments.optimizers import Optimizers
from trainlint.runtime.instruments.tensors import plain, tensors_in
from trainlint.runtime.patches import Patches
from trainlint.runtime.recorder import Recorder
from trainlint.runtime.trace import RootCall, Step

# The outputs of the layers are added up at the first steps; later ones hold as much.
MEASURED_STEPS = 3


class Memory:
    """Reads what the allocator and the tensors say; allocates nothing."""

    def __init__(
        self, recorder: Recorder, book: ParamBook, modules: Modules, optimizers: Optimizers
    ) -> None:
        self.recorder = recorder
        self.book = book
        self.modules = modules
        self.optimizers = optimizers
        self._syncs = 0
        self._cuda = False
        self._outputs: dict[int, int] = {}
        modules.on_root_start.append(lambda *_: self._outputs.clear())
        modules.on_leaf.append(self._leaf)
        modules.on_root_end.append(self._root_ends)
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

    def _measuring(self) -> bool:
        call = self.modules.call
        return call is not None and call.grad and self.recorder.step < MEASURED_STEPS

    def _leaf(self, module: nn.Module, inputs: Any, output: Any) -> None:
        if not self._measuring():
            return
        for tensor in tensors_in(output):
            if tensor.requires_grad:
                storage = plain(tensor).untyped_storage()
                self._outputs[storage.data_ptr()] = storage.nbytes()

    def _root_ends(self, module: nn.Module, call: RootCall, output: Any) -> None:
        facts = self.recorder.trace.memory
        first = next(tensors_in(self.modules.call_inputs), None)
        held = sum(self._outputs.values())
        if call.grad and first is not None and first.dim() and held > facts.activations:
            facts.activations, facts.batch = held, first.shape[0]

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
            facts.capacity = physical_bytes()
        params = [p for _, p in self.book.live()]
        facts.weights = sum(_bytes(p) for p in params)
        facts.gradients = max(facts.gradients, sum(_bytes(p.grad) for p in params))
        facts.optimizer = sum(self._state_bytes(o) for _, o in self.optimizers.all())
        held = facts.weights + facts.gradients + facts.optimizer
        if self._cuda:
            facts.activations = max(0, facts.peak - held)

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


def physical_bytes() -> int:
    """The memory of this machine, where the system says it; otherwise 0."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return 0
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """The resident memory of this process, where the system says it; otherwise 0."""
    if not sys.platform.startswith("linux"):
        return 0
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[1]) * 4096
