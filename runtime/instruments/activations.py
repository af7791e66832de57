"""Layer outputs: scale, saturation, dead units, distributions, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from trainlint.runtime.instruments.book import ParamBook
from trainlint.runtime.instruments.modules import Modules
from trainlint.runtime.instruments.optimizers import Optimizers
from trainlint.runtime.instruments.tensors import histogram, plain, sample, tensors_in
from trainlint.runtime.patches import Patches
from trainlint.runtime.recorder import Recorder, guarded
from trainlint.runtime.trace import ActivationFacts, Step, WeightHistogram

MOST_LAYERS = 120
# Measured at every second step, so that a probed step stays below twice the plain one.
MEASURE_EVERY = 2
# Distributions are taken once, when the first steps' transients are over.
HISTOGRAM_STEP = 4
# A tanh beyond 0.97 and a sigmoid beyond 0.97 or below 0.03 pass almost no gradient.
TANH_SATURATED = 0.97
SIGMOID_SATURATED = 0.47
_RECTIFIERS = (nn.ReLU, nn.ReLU6, nn.Threshold)


class Activations:
    """Statistics stay on the device and cross once a step."""

    def __init__(
        self, recorder: Recorder, book: ParamBook, modules: Modules, optimizers: Optimizers
    ) -> None:
        self.recorder = recorder
        self.book = book
        self.modules = modules
        self._layers: dict[str, ActivationFacts] = {}
        self._peaks: dict[str, torch.Tensor] = {}
        self._pending: list[tuple[list[float], torch.Tensor]] = []
        self._functional_index = 0
        self._weights_drawn = False
        modules.on_leaf.append(self._leaf)
        modules.on_root_start.append(lambda *_: self._restart())
        optimizers.on_step.append(self._step_ends)
        optimizers.before_step.append(lambda optimizer, _: self._weight_gradients(optimizer))
        recorder.before_flush.append(self._dead_units)

    def install(self, patches: Patches) -> None:
        """Wrap the functional activations; modules are already hooked."""
        for name, owner in (("relu", functional), ("relu", torch), ("tanh", torch)):
            patches.wrap(owner, name, self._make(name))

    def _make(self, name: str) -> Callable[[Any], Any]:
        def make(original: Any) -> Any:
            def activation(*args: Any, **kwargs: Any) -> Any:
                result = original(*args, **kwargs)
                self._functional(name, result)
                return result

            return activation

        return make

    def _restart(self) -> None:
        self._functional_index = 0

    def _measuring(self) -> bool:
        call = self.modules.call
        step = self.recorder.step
        return (
            call is not None
            and call.grad
            and self.recorder.lap == 0
            and (step % MEASURE_EVERY == 0 or step == HISTOGRAM_STEP)
        )

    @guarded
    def _functional(self, name: str, result: Any) -> None:
        inside = self.modules.stack and self.modules.stack[-1]
        if not inside or not self._measuring() or isinstance(inside, (nn.ReLU, nn.Tanh)):
            return
        self._functional_index += 1
        label = f"{self.book.module_name(inside)}.{name}[{self._functional_index}]"
        self._measure(label, name.upper(), result, name == "relu", name == "tanh", False)

    def _leaf(self, module: nn.Module, inputs: Any, output: Any) -> None:
        if not self._measuring():
            return
        first = next(tensors_in(output), None)
        if first is None or not first.is_floating_point():
            return
        self._measure(
            self.book.module_name(module),
            type(module).__name__,
            first,
            isinstance(module, _RECTIFIERS),
            isinstance(module, nn.Tanh),
            isinstance(module, nn.Sigmoid),
        )

    def _measure(
        self, name: str, cls: str, output: torch.Tensor, relu: bool, tanh: bool, sigmoid: bool
    ) -> None:
        facts = self._layers.get(name)
        if facts is None:
            if len(self._layers) >= MOST_LAYERS:
                return
            facts = self._layers[name] = ActivationFacts(name, cls)
            self.recorder.trace.activations.append(facts)
        with torch.no_grad():
            data = sample(output).float()
            std, mean = torch.std_mean(data) if data.numel() > 1 else (data.sum() * 0, data.sum())
            self._pending += [(facts.mean, mean), (facts.std, std), (facts.peak, data.abs().max())]
            if tanh:
                share = (data.abs() > TANH_SATURATED).float().mean()
                self._pending.append((facts.saturated, share))
            if sigmoid:
                share = ((data - 0.5).abs() > SIGMOID_SATURATED).float().mean()
                self._pending.append((facts.saturated, share))
            if relu and output.dim() >= 2:
                self._note_peaks(name, facts, plain(output))
            if self.recorder.step == HISTOGRAM_STEP and not facts.edges:
                facts.values, facts.edges = histogram(output)
        if self.recorder.step == HISTOGRAM_STEP and output.requires_grad:
            output.register_hook(lambda grad, facts=facts: self._gradient(facts, grad))

    def _note_peaks(self, name: str, facts: ActivationFacts, output: torch.Tensor) -> None:
        channel = output.dim() - 1 if output.dim() == 3 else 1
        others = [d for d in range(output.dim()) if d != channel]
        peak = output.amax(dim=others)
        known = self._peaks.get(name)
        same = known is not None and known.shape == peak.shape
        self._peaks[name] = torch.maximum(known, peak) if same and known is not None else peak
        facts.observations += 1
        facts.units = peak.numel()

    @guarded
    def _gradient(self, facts: ActivationFacts, grad: torch.Tensor) -> None:
        if not facts.grad_edges:
            data = sample(grad).float()
            facts.grad_values, facts.grad_edges = histogram(grad)
            facts.grad_mean, facts.grad_std = float(data.mean()), float(data.std())

    def _weight_gradients(self, optimizer: torch.optim.Optimizer) -> None:
        if self.recorder.step != HISTOGRAM_STEP or self._weights_drawn:
            return
        self._weights_drawn = True
        with torch.no_grad():
            for param in [p for group in optimizer.param_groups for p in group["params"]]:
                if param.grad is None or param.dim() < 2 or param.grad.is_sparse:
                    continue
                if len(self.recorder.trace.weight_grads) < MOST_LAYERS:
                    self._draw_weight(param)

    def _draw_weight(self, param: torch.Tensor) -> None:
        grad, weight = plain(param.grad).float(), plain(param).float()  # type: ignore[arg-type]
        values, edges = histogram(grad)
        std, scale = float(grad.std()), float(weight.std())
        name = self.book.facts[self.book.index_of(param)].name
        self.recorder.trace.weight_grads.append(
            WeightHistogram(
                name,
                list(param.shape),
                float(grad.mean()),
                std,
                std / scale if scale else math.nan,
                values,
                edges,
            )
        )

    def _step_ends(self, step: Step) -> None:
        if not self._pending:
            return
        by_device: dict[torch.device, list[tuple[list[float], torch.Tensor]]] = {}
        for target, value in self._pending:
            by_device.setdefault(value.device, []).append((target, value))
        self._pending = []
        for entries in by_device.values():
            numbers = torch.stack([value for _, value in entries]).tolist()
            for (target, _), number in zip(entries, numbers, strict=True):
                target.append(number)

    def _dead_units(self) -> None:
        for name, peak in self._peaks.items():
            self._layers[name].dead = float((peak <= 0).float().mean())
