"""The same batch again and again: can this set-up learn anything at all?

The first training batch is held, random states are rewound after each step (dropout masks, noise,
timesteps and hand-made batches stay put), and the learning rate is held at its base value, so that
warm-up does not hide learning. Without a loader, what outermost modules are called with is held.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer, lr_scheduler

from trainlint.runtime.instruments.loaders import Loaders
from trainlint.runtime.instruments.losses import Losses
from trainlint.runtime.instruments.modules import Modules, in_backward, under_transform
from trainlint.runtime.instruments.optimizers import Optimizers
from trainlint.runtime.instruments.protocol import CallOrder
from trainlint.runtime.instruments.tensors import map_tensors, tensors_in
from trainlint.runtime.patches import Patches
from trainlint.runtime.phases.randomness import RandomState
from trainlint.runtime.recorder import Recorder, guarded
from trainlint.runtime.trace import LoaderPass, Step

# A schedule written as a function of the step is searched this far for its peak.
SCHEDULE_HORIZON = range(0, 20000, 50)
# Arguments of a model by these names are what it is to say, or how to read its inputs.
_NO_INPUT = re.compile(r"label|target|truth|answer|^y$|^gt|mask|len(gth)?s?$", re.IGNORECASE)
# The state of a model itself is compared this often, and up to this many elements.
STATE_STEPS = 5
MOST_STATE = 10_000_000

Call = tuple[tuple[Any, ...], dict[str, Any]]


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
        self._calls: list[Call] = []
        self._buffers: dict[str, torch.Tensor] = {}
        self._targets: list[Any] = []
        self._call = self._target = 0
        self._optimizer: Optimizer | None = None
        optimizers.before_step.append(self._set_rate)
        optimizers.on_step.append(self._step_ends)
        if recorder.spec.loader is not None:
            loaders.hold = self._hold
        else:
            losses.hold_target = self._hold_target
        self._held = "inputs" if recorder.spec.loader is None else "loader"
        if recorder.spec.phase == "fixed":
            recorder.trace.held = self._held

    def install(self, patches: Patches) -> None:
        """Replace the inputs of outermost modules where there is no loader or they are zeroed.

        Not by a forward hook: a global one is given no keywords.
        """
        spec = self.recorder.spec
        if (spec.loader is None or spec.phase == "zeroed") and not spec.keep_compile:
            patches.wrap(nn.Module, "__call__", self._make_call)

    def _make_call(self, original: Any) -> Any:
        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if self._is_outermost() and torch.is_grad_enabled() and not in_backward():
                replaced = self._replaced(module, (args, kwargs))
                if replaced is not None:
                    args, kwargs = replaced
            return original(module, *args, **kwargs)

        return call

    def _hold(self, facts: LoaderPass, draw: Callable[[], Any]) -> Any:
        if facts.loader != self.recorder.spec.loader:
            return draw()
        if facts.backwards == 0:
            # Not known to be a training pass yet; an evaluation pass must be able to end.
            batch = draw()
            self._batch = map_tensors(batch, lambda t: t.clone())
            return batch
        return map_tensors(self._batch, lambda t: t.clone())

    def _is_outermost(self) -> bool:
        """Whether a call is the script's own, with values that can be held."""
        return not self.modules.stack and not under_transform()

    @guarded
    def _replaced(self, module: nn.Module, given: Call) -> Call | None:
        """What an outermost module is called with instead; what carries a graph is no data."""
        if any(t.requires_grad for t in tensors_in(given)):
            return None
        held = self._held_call(given) if self.recorder.spec.loader is None else given
        return self._zeroed(module, held) if self.recorder.spec.phase == "zeroed" else held

    def _held_call(self, given: Call) -> Call:
        position, self._call = self._call, self._call + 1
        if position == len(self._calls):
            args, kwargs = map_tensors(given, lambda t: t.clone())
            self._calls.append((args, kwargs))
        held = self._calls[position]
        if [t.shape for t in tensors_in(held)] != [t.shape for t in tensors_in(given)]:
            return given
        args, kwargs = map_tensors(held, lambda t: t.clone())
        return args, kwargs

    def _zeroed(self, module: nn.Module, given: Call) -> Call:
        """The call with its inputs zeroed: by their names, or only the first if there are none."""
        args, kwargs = given
        names = chain(_positional(module), repeat(""))
        changed = []
        for position, (name, value) in enumerate(zip(names, args, strict=False)):
            first = position == 0 and not name
            changed.append(self._zero(value) if first or _is_input(name) else value)
        keywords = {n: self._zero(v) if _is_input(n) else v for n, v in kwargs.items()}
        return tuple(changed), keywords

    def _zero(self, value: Any) -> Any:
        if next(tensors_in(value), None) is not None:
            self.recorder.trace.held = self._held
        return map_tensors(value, torch.zeros_like)

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
        self._note_own_state()
        if self._state is None:
            self._state = RandomState.take()
        else:
            self._state.restore()

    def _note_own_state(self) -> None:
        """Which buffers change from step to step, as a queue of earlier samples does."""
        steps = len(self.recorder.trace.steps)
        changing = self.recorder.trace.own_state
        if steps > STATE_STEPS or changing:
            return
        for root in list(self.modules.roots.values()):
            for name, buffer in _state_of(root):
                before = self._buffers.get(name)
                if before is not None and not torch.equal(before, buffer):
                    changing.append(name)
                self._buffers[name] = buffer.detach().clone()


def _positional(module: nn.Module) -> list[str]:
    """The names of the arguments that ``forward`` takes by position."""
    inner = getattr(module, "module", module) if "Parallel" in type(module).__name__ else module
    try:
        parameters = inspect.signature(inner.forward).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]


def _is_input(name: str) -> bool:
    return bool(name) and _NO_INPUT.search(name) is None


def _state_of(root: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """The buffers of a model that are no statistics of a norm."""
    for path, module in root.named_modules():
        if isinstance(module, nn.modules.batchnorm._NormBase):
            continue
        for name, buffer in module._buffers.items():
            if buffer is not None and buffer.dim() and buffer.numel() < MOST_STATE:
                yield f"{path}.{name}".lstrip("."), buffer
