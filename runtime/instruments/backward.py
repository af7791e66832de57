"""Backward passes: the loss value, where it was called, and what it wrote."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch

from trainlint.runtime.instruments.graphs import implicit_broadcasts, summary
from trainlint.runtime.instruments.ledger import Ledger
from trainlint.runtime.instruments.optimizers import Optimizers
from trainlint.runtime.patches import Patches
from trainlint.runtime.recorder import Recorder, guarded
from trainlint.runtime.trace import Backward, Step

MOST_BACKWARDS = 4000
# The graph behind a loss looks the same at each step; the first few tell.
GRAPHS_LOOKED_AT = 6
# Scaling by a GradScaler or by the number of micro-batches; the script keeps what is below.
_SCALINGS = ("MulBackward0", "DivBackward0")


class _Sentinel:
    """Lives exactly as long as the graph node whose metadata holds it."""


class Backwards:
    """Wraps ``torch.autograd.backward``, through which every ``loss.backward()`` goes."""

    def __init__(self, recorder: Recorder, ledger: Ledger, optimizers: Optimizers) -> None:
        self.recorder = recorder
        self.ledger = ledger
        self.optimizers = optimizers
        self.unscale: dict[int, float] = {}
        self.on_backward: list[Callable[[], None]] = []
        self._values: list[float] = []
        self._sentinels: list[weakref.ref[_Sentinel]] = []
        optimizers.on_step.append(self._stepped)

    def install(self, patches: Patches) -> None:
        """Wrap backward."""
        patches.wrap(torch.autograd, "backward", self._make)

    def _make(self, original: Any) -> Any:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if torch._C._current_graph_task_id() != -1:
                return original(tensors, *args, **kwargs)
            self.recorder.claim()
            if not self.recorder.active():
                return original(tensors, *args, **kwargs)
            self._begin(tensors, bool(kwargs.get("retain_graph") or (len(args) > 1 and args[1])))
            try:
                result = original(tensors, *args, **kwargs)
            except RuntimeError as problem:
                self._failed(str(problem))
                raise
            self._end()
            self.recorder.stop_if_done()
            return result

        return backward

    @guarded
    def _begin(self, tensors: Any, retain_graph: bool) -> None:
        self.optimizers.forget_open_steps()
        self.ledger.backward_starts()
        losses = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        value = self._value(losses)
        if value is not None:
            self._values.append(value)
        place = self.recorder.event("backward")
        record = Backward(place, self.recorder.step, value, retain_graph)
        kept = self.recorder.trace.backwards
        if len(kept) < GRAPHS_LOOKED_AT:
            record.graph = summary(losses[0])
            record.batch_axes = implicit_broadcasts(losses[0])
        if len(kept) < MOST_BACKWARDS:
            kept.append(record)
        self._watch(losses[0])

    def _value(self, losses: list[torch.Tensor]) -> float | None:
        if not losses or losses[0].numel() != 1:
            return None
        known = self.unscale.pop(id(losses[0]), None)
        return known if known is not None else float(losses[0].detach())

    def _watch(self, loss: torch.Tensor) -> None:
        node: Any = loss.grad_fn
        while node is not None and node.name() in _SCALINGS and node.next_functions[0][0]:
            node = node.next_functions[0][0]
        if node is None:
            return
        sentinel = _Sentinel()
        node.metadata["trainlint"] = sentinel
        self._sentinels.append(weakref.ref(sentinel))

    def live_losses(self) -> int:
        """How many graphs of past backward passes are still held by something."""
        self._sentinels = [s for s in self._sentinels if s() is not None]
        return len(self._sentinels)

    @guarded
    def _failed(self, message: str) -> None:
        self.recorder.event("backward-failed", detail=message.split("\n")[0])

    @guarded
    def _end(self) -> None:
        self.recorder.backwards_since_step += 1
        self.ledger.backward_ends()
        for listener in self.on_backward:
            listener()

    def _stepped(self, step: Step) -> None:
        if self._values:
            step.loss = sum(self._values)
            self._values = []
        step.live_losses = self.live_losses()
