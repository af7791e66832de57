"""Optimizers: who they are, and what each of their steps changed."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable
from typing import Any

import torch
import torch._dynamo
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from trainlint.runtime.instruments.book import ParamBook
from trainlint.runtime.instruments.ledger import Ledger
from trainlint.runtime.instruments.tensors import norms, plain
from trainlint.runtime.patches import Patches
from trainlint.runtime.places import user_place
from trainlint.runtime.recorder import Recorder, guarded
from trainlint.runtime.trace import GroupFacts, OptimizerFacts, Step

# A copy of the weights is taken around each step; above this many elements only now and then.
COPY_EVERY_STEP_BELOW = 200_000_000
COPY_EVERY = 4
_LOW_PRECISION = (torch.bfloat16, torch.float16)

Pairs = list[tuple[int, torch.Tensor]]


class Optimizers:
    """Registers every optimizer and measures its outermost steps."""

    def __init__(self, recorder: Recorder, book: ParamBook, ledger: Ledger) -> None:
        self.recorder = recorder
        self.book = book
        self.ledger = ledger
        self.on_step: list[Callable[[Step], None]] = []
        self.before_step: list[Callable[[Optimizer, int], None]] = []
        self.first_lrs: dict[int, list[float]] = {}
        self._known: list[weakref.ref[Optimizer]] = []
        self._depth: dict[int, int] = {}
        self._open: tuple[Step, Pairs, list[torch.Tensor] | None] | None = None
        self._last_end = time.monotonic()

    def install(self, patches: Patches) -> None:
        """Hook optimizer construction and steps."""

        def make(original: Any) -> Any:
            def init(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
                original(optimizer, *args, **kwargs)
                self.recorder.claim()
                self._created(optimizer)

            return init

        patches.wrap(Optimizer, "__init__", make)
        patches.later(register_optimizer_step_pre_hook(self._pre).remove)
        patches.later(register_optimizer_step_post_hook(self._post).remove)
        patches.wrap(torch._dynamo.eval_frame.TorchPatcher, "patch", _make_patch)
        self.recorder.before_flush.append(self.refresh)

    def all(self) -> list[tuple[int, Optimizer]]:
        """Every optimizer that still exists, with its position."""
        pairs = ((i, reference()) for i, reference in enumerate(self._known))
        return [(i, optimizer) for i, optimizer in pairs if optimizer is not None]

    def index_of(self, optimizer: Optimizer) -> int:
        """The position of an optimizer; an unknown one is registered.

        A wrapper that was never initialised as an optimizer, accelerate's for one, stands for the
        one inside: that takes the steps.
        """
        for index, known in self.all():
            if known is optimizer:
                return index
        inner = getattr(optimizer, "optimizer", None)
        if isinstance(inner, Optimizer) and inner is not optimizer:
            return self.index_of(inner)
        self._known.append(weakref.ref(optimizer))
        name = type(optimizer).__name__
        self.recorder.trace.optimizers.append(OptimizerFacts(name, user_place(), []))
        return len(self._known) - 1

    @guarded
    def _created(self, optimizer: Optimizer) -> None:
        index = self.index_of(optimizer)
        self._describe(index, optimizer)
        groups = self.recorder.trace.optimizers[index].groups
        self.first_lrs[index] = [group.lr for group in groups]

    def _describe(self, index: int, optimizer: Optimizer) -> None:
        facts = self.recorder.trace.optimizers[index]
        facts.groups = [
            GroupFacts(
                float(group.get("lr", math.nan)),
                float(group.get("weight_decay", 0.0) or 0.0),
                [self.book.index_of(p) for p in group["params"]],
            )
            for group in optimizer.param_groups
        ]

    def refresh(self) -> None:
        """Bring groups and memberships up to date."""
        for param in self.book.facts:
            param.optimizers = []
        for index, optimizer in self.all():
            self._describe(index, optimizer)
        for index, facts in enumerate(self.recorder.trace.optimizers):
            for position in [p for group in facts.groups for p in group.params]:
                self.book.facts[position].optimizers.append(index)
        self.book.refresh()

    def _pre(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self.recorder.active():
            return
        depth = self._depth.get(id(optimizer), 0)
        self._depth[id(optimizer)] = depth + 1
        if depth == 0:
            self._begin(optimizer, bool(args and callable(args[0])) or bool(kwargs.get("closure")))

    def _post(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self.recorder.active():
            return
        depth = self._depth.get(id(optimizer), 1) - 1
        self._depth[id(optimizer)] = max(depth, 0)
        if depth <= 0:
            self._end()
            self.recorder.stop_if_done()

    def forget_open_steps(self) -> None:
        """A new backward outside a closure means that no step is in progress."""
        if self._open is None or not self._open[0].closure:
            self._depth.clear()

    @guarded
    def _begin(self, optimizer: Optimizer, closure: bool) -> None:
        index = self.index_of(optimizer)
        for listener in self.before_step:
            listener(optimizer, index)
        groups = optimizer.param_groups
        pairs = [(self.book.index_of(p), p) for group in groups for p in group["params"]]
        facts = self.recorder.trace.optimizers[index]
        lrs = [float(group.get("lr", math.nan)) for group in groups]
        place = self.recorder.event("step", index)
        step = Step(index, facts.steps, self.recorder.lap, place, closure, lrs, len(pairs))
        if not closure:
            self.ledger.before_step(step, pairs)
        copies = None
        with torch.no_grad():
            if self._copies_now(pairs):
                copies = [plain(p).clone() for _, p in pairs]
        self._open = (step, pairs, copies)

    def _copies_now(self, pairs: Pairs) -> bool:
        small = sum(p.numel() for _, p in pairs) < COPY_EVERY_STEP_BELOW
        return small or self.recorder.step % COPY_EVERY == 0

    @guarded
    def _end(self) -> None:
        if self._open is None:
            return
        step, pairs, copies = self._open
        self._open = None
        with torch.no_grad():
            self._measure_gradients(step, pairs)
            if copies is not None:
                self._measure_update(step, pairs, copies)
        self.ledger.after_step(step, pairs)
        facts = self.recorder.trace.optimizers[step.optimizer]
        facts.steps += 1
        facts.attempts += 1
        self.recorder.trace.steps.append(step)
        for listener in self.on_step:
            listener(step)
        now = time.monotonic()
        step.seconds = now - self._last_end
        self._last_end = now
        self._count(step)
        self.recorder.progress(step.loss)
        self.recorder.flush()

    def _count(self, step: Step) -> None:
        self.recorder.made_step(self.recorder.lap_start + self._steps_in_lap(step))

    def _steps_in_lap(self, step: Step) -> int:
        steps = self.recorder.trace.steps
        return sum(1 for s in steps if s.lap == step.lap and s.optimizer == step.optimizer)

    def _measure_gradients(self, step: Step, pairs: Pairs) -> None:
        having = [(i, p.grad) for i, p in pairs if p.grad is not None]
        values = norms([plain(grad) for _, grad in having])
        total = 0.0
        for (index, _), value in zip(having, values, strict=True):
            facts = self.book.facts[index]
            facts.grad_norm.append(value)
            facts.zero_grad += value == 0
            step.zero_grad += value == 0
            if math.isfinite(value):
                total += value * value
            else:
                step.nonfinite_grads += 1
                step.first_nonfinite = step.first_nonfinite or facts.name
        step.grad_norm = math.sqrt(total)

    def _measure_update(self, step: Step, pairs: Pairs, copies: list[torch.Tensor]) -> None:
        weights = [plain(p) for _, p in pairs]
        unchanged = self._lost(pairs, weights, copies)
        for copy, weight in zip(copies, weights, strict=True):
            copy.sub_(weight)
        updates, sizes = norms(copies), norms(weights)
        for position, (index, param) in enumerate(pairs):
            facts = self.book.facts[index]
            changed = updates[position] != 0
            facts.changed += changed
            step.changed += changed
            facts.frozen_but_changed += changed and not param.requires_grad
            facts.update_norm.append(updates[position])
            facts.weight_norm.append(sizes[position])
            if position in unchanged:
                facts.lost.append(unchanged[position])
        step.update_norm = math.sqrt(sum(u * u for u in updates if math.isfinite(u)))
        step.weight_norm = math.sqrt(sum(w * w for w in sizes if math.isfinite(w)))

    def _lost(
        self, pairs: Pairs, weights: list[torch.Tensor], copies: list[torch.Tensor]
    ) -> dict[int, float]:
        """For low precision: the share of elements with a gradient that the step left alone."""
        found = {}
        for position, (_, param) in enumerate(pairs):
            grad = param.grad
            if grad is None or param.dtype not in _LOW_PRECISION or grad.is_sparse:
                continue
            asked = plain(grad) != 0
            kept = (copies[position] == weights[position]) & asked
            found[position] = float(kept.sum()) / max(1, int(asked.sum()))
        return found


def _make_patch(original: Any) -> Any:
    """Older torch takes the hooks of every step away when something is compiled."""

    def patch() -> None:
        original()
        hooking: Any = Optimizer.profile_hook_step
        hooked = hooking(lambda _: None).__code__
        for cls in vars(torch.optim).values():
            step = getattr(cls, "step", None)
            if getattr(step, "hooked", False) and getattr(step, "__code__", None) is not hooked:
                cls.step = hooking(step)
                cls.step.hooked = True

    return patch
