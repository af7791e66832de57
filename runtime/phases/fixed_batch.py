"""The same batch again and again: can this set-up learn anything at all?

The first training batch is held, random states are rewound after each step (dropout masks, noise,
timesteps and hand-made batches stay put), and the learning rate is held at its base value, so that
warm-up does not hide learning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim import Optimizer, lr_scheduler

from trainlint.runtime.instruments.loaders import Loaders
from trainlint.runtime.instruments.losses import Losses
from trainlint.runtime.instruments.modules import Modules
from trainlint.runtime.instruments.optimizers import Optimizers
from trainlint.runtime.instruments.protocol import CallOrder
from trainlint.runtime.instruments.tensors import map_tensors
from trainlint.runtime.patches import Patches
from trainlint.runtime.phases.randomness import RandomState
from trainlint.runtime.recorder import Recorder
from trainlint.runtime.trace import LoaderPass, Step

# A schedule written as a function of the step is searched this far for its peak.
SCHEDULE_HORIZON = range(0, 20000, 50)


class FixedBatch:
    """Holds the batch, the randomness and the learning rate."""

    def __init__(
        self,
        recorder: Recorder,
        modules: Modules,
        loaders: Loaders,
        losses: Losses,
        optimizers: Optimizers,
        protocol: CallOrder,
    ) -> None:
        self.recorder = recorder
        self.modules = modules
        self.losses = losses
        self.protocol = protocol
        self.optimizers = optimizers
        self._batch: Any = None
        self._state: RandomState | None = None
        self._user_lrs: list[Any] = []
        self._inputs: list[Any] = []
        self._targets: list[Any] = []
        self._call = self._target = 0
        self._optimizer: Optimizer | None = None
        optimizers.before_step.append(self._set_rate)
        optimizers.on_step.append(self._step_ends)
        if recorder.spec.loader is not None:
            loaders.hold = self._hold
            recorder.trace.held = "loader"
        else:
            losses.hold_target = self._hold_target
            recorder.trace.held = "inputs"

    def install(self, patches: Patches) -> None:
        """Replace the inputs of outermost modules where there is no loader or they are zeroed."""
        if self.recorder.spec.loader is None or self.recorder.spec.phase == "zeroed":
            patches.later(register_module_forward_pre_hook(self._replace).remove)

    def _hold(self, facts: LoaderPass, draw: Callable[[], Any]) -> Any:
        if facts.loader != self.recorder.spec.loader:
            return draw()
        if facts.backwards == 0:
            # Not known to be a training pass yet; an evaluation pass must be able to end.
            batch = draw()
            self._batch = map_tensors(batch, lambda t: t.clone())
            return batch
        return map_tensors(self._batch, lambda t: t.clone())

    def _replace(self, module: nn.Module, inputs: Any) -> Any:
        outermost = len(self.modules.stack) == 1 and self.modules.stack[0] is module
        if not outermost or not torch.is_grad_enabled() or not self.recorder.active():
            return None
        if self.recorder.spec.loader is None:
            inputs = self._held_inputs(inputs)
        if self.recorder.spec.phase == "zeroed":
            inputs = _zero_first(inputs)
        return inputs

    def _held_inputs(self, inputs: Any) -> Any:
        position, self._call = self._call, self._call + 1
        if position == len(self._inputs):
            self._inputs.append(map_tensors(inputs, _copy_of_constant))
        held = self._inputs[position]
        return map_tensors(held, lambda t: t.clone()) if _same_shapes(held, inputs) else inputs

    def _hold_target(self, target: Any) -> Any:
        if not torch.is_grad_enabled():
            return target  # an evaluation, whose losses are no part of the batch
        if not isinstance(target, torch.Tensor) or target.requires_grad:
            return target
        position, self._target = self._target, self._target + 1
        if position == len(self._targets):
            self._targets.append(target.clone())
        held = self._targets[position]
        return held if held.shape == target.shape else target

    def _set_rate(self, optimizer: Optimizer, index: int) -> None:
        self._optimizer = optimizer
        self._user_lrs = [group.get("lr") for group in optimizer.param_groups]
        first = self.optimizers.first_lrs.get(index, [])
        for position, group in enumerate(optimizer.param_groups):
            rate = group.get("lr")
            if isinstance(rate, float):
                base = max([rate, *first[position : position + 1], group.get("initial_lr", 0.0)])
                group["lr"] = base * self._peak_factor(optimizer, position)

    def _peak_factor(self, optimizer: Optimizer, position: int) -> float:
        """How far a schedule given as a function stays below its base value, at its peak."""
        for reference in self.protocol.schedulers:
            scheduler = reference()
            if not isinstance(scheduler, lr_scheduler.LambdaLR):
                continue
            if scheduler.optimizer is optimizer and position < len(scheduler.lr_lambdas):
                factor = scheduler.lr_lambdas[position]
                return float(max(factor(step) for step in SCHEDULE_HORIZON))
        return 1.0

    def _step_ends(self, step: Step) -> None:
        if self._optimizer is not None:
            for group, rate in zip(self._optimizer.param_groups, self._user_lrs, strict=False):
                if rate is not None:
                    group["lr"] = rate
        self._call = self._target = 0
        if self._state is None:
            self._state = RandomState.take()
        else:
            self._state.restore()


def _copy_of_constant(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.requires_grad else tensor.clone()


def _same_shapes(held: Any, inputs: Any) -> bool:
    """Whether held inputs can stand for new ones; a graph cannot be held."""
    pairs = list(zip(held, inputs, strict=False))
    return len(held) == len(inputs) and all(
        not (isinstance(new, torch.Tensor) and (new.requires_grad or new.shape != old.shape))
        for old, new in pairs
    )


def _zero_first(inputs: Any) -> Any:
    """The inputs with their first tensor zeroed: the target may be among the others."""
    for position, value in enumerate(inputs):
        if isinstance(value, torch.Tensor):
            zero = torch.zeros_like(value)
            return (*inputs[:position], zero, *inputs[position + 1 :])
    return None
