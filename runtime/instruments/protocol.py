"""Clipping, loss scaling and learning rate schedules: calls whose order matters."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.optim import lr_scheduler
from torch.optim.optimizer import Optimizer

from trainlint.runtime.instruments.backward import Backwards
from trainlint.runtime.instruments.optimizers import Optimizers
from trainlint.runtime.patches import Patches
from trainlint.runtime.places import user_place
from trainlint.runtime.recorder import Recorder, guarded
from trainlint.runtime.trace import SchedulerFacts


class CallOrder:
    """Records the calls; the checks know which orders are wrong."""

    def __init__(self, recorder: Recorder, optimizers: Optimizers, backwards: Backwards) -> None:
        self.recorder = recorder
        self.optimizers = optimizers
        self.backwards = backwards
        self.schedulers: list[weakref.ref[Any]] = []
        self.scalers: list[weakref.ref[Any]] = []
        self._inside_scheduler = 0

    def install(self, patches: Patches) -> None:
        """Wrap clipping, the GradScaler and every scheduler class."""
        clipping = torch.nn.utils.clip_grad
        for owner in (torch.nn.utils, clipping):
            for name in ("clip_grad_norm_", "clip_grad_value_"):
                patches.wrap(owner, name, self._make_clip)
        scaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
        for name in ("scale", "unscale_", "step", "update"):
            patches.wrap(scaler, name, getattr(self, f"_make_{name.strip('_')}"))
        patches.wrap(Optimizer, "zero_grad", self._make_zero_grad)
        for cls in vars(lr_scheduler).values():
            if isinstance(cls, type) and "step" in vars(cls) and hasattr(cls, "get_last_lr"):
                patches.wrap(cls, "step", self._make_scheduler_step)
                if "__init__" in vars(cls):
                    patches.wrap(cls, "__init__", self._make_scheduler_init)
            elif isinstance(cls, type) and issubclass(cls, lr_scheduler.LRScheduler):
                patches.wrap(cls, "__init__", self._make_scheduler_init)

    def _make_clip(self, original: Any) -> Any:
        def clip(parameters: Any, limit: Any, *args: Any, **kwargs: Any) -> Any:
            if self.recorder.active():
                if not isinstance(parameters, torch.Tensor):
                    parameters = list(parameters)
                self._clipped(parameters, limit)
            return original(parameters, limit, *args, **kwargs)

        return clip

    @guarded
    def _clipped(self, parameters: Any, limit: Any) -> None:
        listed = [parameters] if isinstance(parameters, torch.Tensor) else parameters
        owner, state = self._owner(listed[0] if listed else None), ""
        if owner is not None:
            state = self._scaler_state(owner)
            if any(p.grad is not None for p in listed):
                state += " with-gradients"
        if not listed:
            state += " empty"
        if float(limit) == float("inf"):
            state += " measuring"
        index = None if owner is None else self.optimizers.index_of(owner)
        self.recorder.event("clip", index, state.strip())

    def _owner(self, param: torch.Tensor | None) -> Optimizer | None:
        for _, optimizer in self.optimizers.all():
            for group in optimizer.param_groups:
                if any(p is param for p in group["params"]):
                    return optimizer
        return None

    def _scaler_state(self, optimizer: Optimizer) -> str:
        for reference in self.scalers:
            scaler = reference()
            if scaler is None or not scaler.is_enabled():
                continue
            stage = scaler._per_optimizer_states[id(optimizer)]["stage"]
            return "scaled" if stage.name == "READY" else "unscaled"
        return ""

    def _make_scale(self, original: Any) -> Any:
        def scale(scaler: Any, outputs: Any) -> Any:
            result = original(scaler, outputs)
            if self.recorder.active():
                self._scaled(scaler, outputs, result)
            return result

        return scale

    @guarded
    def _scaled(self, scaler: Any, outputs: Any, result: Any) -> None:
        if not any(known() is scaler for known in self.scalers):
            self.scalers.append(weakref.ref(scaler))
        if isinstance(result, torch.Tensor) and result.numel() == 1:
            self.backwards.unscale[id(result)] = float(outputs.detach())
        if scaler.is_enabled():
            self.recorder.event("scale")

    def _make_unscale(self, original: Any) -> Any:
        return self._recording(original, "unscale")

    def _make_update(self, original: Any) -> Any:
        return self._recording(original, "scaler-update")

    def _recording(self, original: Any, kind: str) -> Any:
        def call(owner: Any, *args: Any, **kwargs: Any) -> Any:
            if self.recorder.active():
                self._note(kind, args)
            return original(owner, *args, **kwargs)

        return call

    @guarded
    def _note(self, kind: str, args: Any) -> None:
        optimizer = args[0] if args and isinstance(args[0], Optimizer) else None
        index = None if optimizer is None else self.optimizers.index_of(optimizer)
        self.recorder.event(kind, index)

    def _make_step(self, original: Any) -> Any:
        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            before = len(self.recorder.trace.steps)
            result = original(scaler, optimizer, *args, **kwargs)
            if self.recorder.active() and len(self.recorder.trace.steps) == before:
                self._skipped(optimizer)
            return result

        return step

    @guarded
    def _skipped(self, optimizer: Any) -> None:
        index = self.optimizers.index_of(optimizer)
        self.recorder.trace.optimizers[index].attempts += 1
        self.recorder.event("step-skipped", index)

    def _make_zero_grad(self, original: Any) -> Any:
        def zero_grad(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if self.recorder.active():
                self._note("zero-grad", (optimizer,))
            return original(optimizer, *args, **kwargs)

        return zero_grad

    def _make_scheduler_init(self, original: Any) -> Any:
        def init(scheduler: Any, *args: Any, **kwargs: Any) -> None:
            self._inside_scheduler += 1
            try:
                original(scheduler, *args, **kwargs)
            finally:
                self._inside_scheduler -= 1
            if self._inside_scheduler == 0 and self.recorder.active():
                self._scheduler_created(scheduler)

        return init

    @guarded
    def _scheduler_created(self, scheduler: Any) -> None:
        optimizer = getattr(scheduler, "optimizer", None)
        index = None if optimizer is None else self.optimizers.index_of(optimizer)
        horizon = getattr(scheduler, "total_steps", None) or getattr(scheduler, "T_max", None)
        self.schedulers.append(weakref.ref(scheduler))
        self.recorder.trace.schedulers.append(
            SchedulerFacts(type(scheduler).__name__, index, user_place(), horizon)
        )

    def _make_scheduler_step(self, original: Any) -> Any:
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            if self._inside_scheduler == 0 and self.recorder.active():
                self._scheduler_stepped(scheduler)
            self._inside_scheduler += 1
            try:
                return original(scheduler, *args, **kwargs)
            finally:
                self._inside_scheduler -= 1

        return step

    @guarded
    def _scheduler_stepped(self, scheduler: Any) -> None:
        for index, known in enumerate(self.schedulers):
            if known() is scheduler:
                facts = self.recorder.trace.schedulers[index]
                facts.steps += 1
                facts.steps_before_end += self.recorder.lap == 0
                self.recorder.event("scheduler-step", index)
