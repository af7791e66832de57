"""Forwards on a deep copy of the model after the last observed step.

Is evaluation repeatable? Does one sample's output depend on another sample? Does a token's output
depend on later tokens? The copy is in evaluation mode, under no_grad, and random states are put
back.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from trainlint.runtime.instruments.losses import Losses
from trainlint.runtime.instruments.modules import Modules
from trainlint.runtime.instruments.tensors import map_tensors, sizes, tensors_in
from trainlint.runtime.phases.randomness import RandomState
from trainlint.runtime.recorder import Recorder
from trainlint.runtime.trace import ExtraForward, Place, RootCall

# Relative differences below this are rounding in a different order of summation.
TOLERANCE = 1e-3
MOST_INPUT_ELEMENTS = 50_000_000
MOST_WEIGHTS = 500_000_000
_RANDOM = ("bernoulli", "dropout", "rand", "normal", "multinomial", "uniform", "exponential")
_SEQUENCE_FIRST = (nn.MultiheadAttention, nn.RNNBase)

Inputs = tuple[tuple[Any, ...], dict[str, Any]]


class _RandomOperations(TorchDispatchMode):
    """Names the operations that draw random numbers."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = str(operation)
        if any(part in name for part in _RANDOM) and name not in self.names:
            self.names.append(name)
        return operation(*args, **(kwargs or {}))


class ExtraForwards:
    """Remembers one training call a root, and examines the largest root at the end."""

    def __init__(self, recorder: Recorder, modules: Modules, losses: Losses) -> None:
        self.recorder = recorder
        self.modules = modules
        self.losses = losses
        self._inputs: dict[int, tuple[Inputs, Place | None]] = {}
        modules.on_root_start.append(lambda _, inputs: self._note_tokens(inputs))
        modules.on_root_end.append(self._remember)
        recorder.before_stop.append(self.run)
        self._ran = False

    def _note_tokens(self, inputs: Any) -> None:
        """Keep the tokens that a language model is given, for its loss to be compared with."""
        first = next(tensors_in(inputs), None)
        tokens = first is not None and not first.is_floating_point() and first.dim() == 2
        self.losses.tokens = first.detach() if tokens and first is not None else None

    def _remember(self, module: nn.Module, call: RootCall, output: Any) -> None:
        inputs = self.modules.call_inputs
        self._note_tokens(inputs)
        if not call.grad or not call.output_grad or id(module) in self._inputs:
            return
        if sum(t.numel() for t in tensors_in(inputs)) < MOST_INPUT_ELEMENTS:
            kept = map_tensors(inputs, lambda t: t.detach().clone())
            self._inputs[id(module)] = ((tuple(kept[0]), dict(kept[1])), call.place)

    def run(self) -> None:
        """Examine the root with the most weights, once."""
        if self._ran or not self.recorder.spec.extra:
            return
        self._ran = True
        facts = ExtraForward()
        self.recorder.trace.extra = facts
        root = self._largest()
        if root is None:
            facts.skipped["all"] = "no training call of a module with tensor inputs was seen"
            return
        state = RandomState.take()
        try:
            self._examine(root, facts)
        finally:
            state.restore()

    def _largest(self) -> nn.Module | None:
        known = [m for key, m in self.modules.roots.items() if key in self._inputs]
        return max(known, key=lambda m: sum(p.numel() for p in m.parameters()), default=None)

    def _examine(self, root: nn.Module, facts: ExtraForward) -> None:
        inputs, facts.place = self._inputs[id(root)]
        inner = getattr(root, "module", root) if "Parallel" in type(root).__name__ else root
        facts.model = type(inner).__name__
        if sum(p.numel() for p in inner.parameters()) > MOST_WEIGHTS:
            facts.skipped["all"] = "the model is too large to copy"
            return
        try:
            twin = copy.deepcopy(inner)
            facts.frozen_by_train = _frozen_by_train(inner, twin)
            twin.eval()
        except Exception as problem:
            facts.skipped["all"] = f"the model cannot be copied ({problem})"
            return
        facts.has_dropout = any(
            isinstance(m, nn.modules.dropout._DropoutNd) for m in twin.modules()
        )
        for name, question in (
            ("repeatable", _ask_repeatable),
            ("mixing", _ask_mixing),
            ("causal", _ask_causal),
        ):
            try:
                with torch.no_grad():
                    question(twin, inputs, facts)
            except Exception as problem:
                facts.skipped[name] = f"{type(problem).__name__}: {problem}".split("\n")[0]


def _frozen_by_train(model: nn.Module, twin: nn.Module) -> list[str]:
    """Parameters with gradients that the model's own ``train()`` switches off, tried on a copy."""
    twin.train()
    pairs = zip(model.named_parameters(), twin.parameters(), strict=True)
    return [name for (name, own), copied in pairs if own.requires_grad > copied.requires_grad]


def _forward(model: nn.Module, inputs: Inputs, seed: int = 0) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    args, kwargs = map_tensors(inputs, lambda t: t.clone())
    # A queue or a cache that a forward fills is none of the next one's.
    kept = [
        (module, {name: b.clone() for name, b in module._buffers.items() if b is not None})
        for module in model.modules()
    ]
    try:
        output = model(*args, **kwargs)
    finally:
        for module, buffers in kept:
            module._buffers.update(buffers)
    return [t.float() for t in tensors_in(output) if t.is_floating_point()]


def _difference(one: torch.Tensor, other: torch.Tensor) -> float:
    """The largest difference, relative to the size of the values."""
    if not one.numel():
        return 0.0
    scale = float(one.abs().mean()) + 1e-12
    return float((one - other).abs().max()) / scale


def _ask_repeatable(model: nn.Module, inputs: Inputs, facts: ExtraForward) -> None:
    first = _forward(model, inputs, 1)
    with _RandomOperations() as seen:
        second = _forward(model, inputs, 2)
    facts.random_ops = seen.names
    facts.output_shape = sizes(first[0]) if first else []
    pairs = list(zip(first, second, strict=True))
    facts.repeatable = all(_difference(a, b) < TOLERANCE for a, b in pairs)


def _changed_at(inputs: Inputs, dim: int, size: int) -> Inputs:
    """The inputs with the last entry along ``dim`` replaced by the first one's values."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() <= dim or tensor.shape[dim] != size:
            return tensor
        changed = tensor.clone()
        first, last = tensor.select(dim, 0), tensor.select(dim, size - 1)
        same = torch.equal(first, last)
        changed.select(dim, size - 1).copy_(first.roll(1) if same and first.dim() else first)
        return changed

    args, kwargs = map_tensors(inputs, change)
    return args, kwargs


def _leak(one: list[torch.Tensor], other: list[torch.Tensor], dim: int, size: int) -> float | None:
    """How much the entries before the changed one moved; ``None`` if no output has them."""
    found = None
    for a, b in zip(one, other, strict=True):
        if a.dim() > max(dim, 1) and a.shape[dim] == size:
            kept = slice(0, size - 1)
            pair = (t.movedim(dim, 0)[kept] for t in (a, b))
            found = max(found or 0.0, _difference(*pair))
    return found


def _ask_mixing(model: nn.Module, inputs: Inputs, facts: ExtraForward) -> None:
    first = next(tensors_in(inputs), None)
    if first is None or first.dim() < 2 or first.shape[0] < 2:
        facts.skipped["mixing"] = "the inputs have no batch of two or more samples"
        return
    size = first.shape[0]
    if any(list(t.shape) == [size, size] for t in list(tensors_in(inputs))[1:]):
        facts.skipped["mixing"] = "the rows are the nodes of a graph"
        return
    plain = _forward(model, inputs)
    mixing = _leak(plain, _forward(model, _changed_at(inputs, 0, size)), 0, size)
    if mixing is None:
        facts.skipped["mixing"] = "no output has one row a sample"
        return
    if mixing > TOLERANCE and first.dim() >= 2 and first.shape[1] > 1:
        # A time-first model mixes along its first dimension by design.
        along = _leak(
            plain, _forward(model, _changed_at(inputs, 1, first.shape[1])), 1, first.shape[1]
        )
        if along is not None and along < TOLERANCE and not _causal_only(model, inputs):
            mixing = 0.0
    facts.mixing = mixing
    if mixing > TOLERANCE:
        facts.mixing_module, facts.sequence_first_module = _first_mixer(model, inputs, size)


def _causal_only(model: nn.Module, inputs: Inputs) -> bool:
    """Whether nothing flows along dimension 1 only because later tokens cannot be seen."""
    first = next(tensors_in(inputs))

    def flip(tensor: torch.Tensor) -> torch.Tensor:
        fits = tensor.dim() > 1 and tensor.shape[:2] == first.shape[:2]
        return tensor.flip(1) if fits else tensor

    args, kwargs = map_tensors(inputs, flip)
    flipped = _forward(model, (args, kwargs))
    changed = map_tensors(_changed_at(inputs, 1, first.shape[1]), flip)
    moved = _leak(
        [t.flip(1) for t in flipped if t.dim() > 1],
        [t.flip(1) for t in _forward(model, (changed[0], changed[1])) if t.dim() > 1],
        1,
        first.shape[1],
    )
    return moved is not None and moved > TOLERANCE


def _first_mixer(model: nn.Module, inputs: Inputs, size: int) -> tuple[str, str]:
    """The first module whose output for one sample moves when another sample changes."""
    runs: list[dict[str, torch.Tensor]] = []
    for version in (inputs, _changed_at(inputs, 0, size)):
        seen: dict[str, torch.Tensor] = {}
        handles = [m.register_forward_hook(_keep(seen, n)) for n, m in model.named_modules() if n]
        try:
            _forward(model, version)
        finally:
            for handle in handles:
                handle.remove()
        runs.append(seen)
    for name, output in runs[0].items():
        moved = _leak([output], [runs[1].get(name, output)], 0, size)
        if moved is not None and moved > TOLERANCE:
            return name, _sequence_first(model, name)
    return "", ""


def _keep(seen: dict[str, torch.Tensor], name: str) -> Callable[..., None]:
    def hook(module: nn.Module, inputs: Any, output: Any) -> None:
        first = next(tensors_in(output), None)
        if first is not None and first.is_floating_point():
            seen.setdefault(name, first.detach().float())

    return hook


def _sequence_first(model: nn.Module, name: str) -> str:
    """The attention or recurrent module at ``name`` that takes the sequence first."""
    module = model.get_submodule(name)
    for part in [module, *module.modules()]:
        if isinstance(part, _SEQUENCE_FIRST) and not part.batch_first:
            return type(part).__name__
    return ""


def _ask_causal(model: nn.Module, inputs: Inputs, facts: ExtraForward) -> None:
    first = next(tensors_in(inputs), None)
    if first is None or first.is_floating_point() or first.dim() != 2 or first.shape[1] < 4:
        return
    facts.token_inputs = True
    length = first.shape[1]
    plain = _forward(model, inputs)
    if not any(t.dim() == 3 and t.shape[:2] == first.shape for t in plain):
        return
    outputs = [t for t in plain if t.dim() == 3 and t.shape[:2] == first.shape]
    changed = _forward(model, _changed_at(inputs, 1, length))
    moved = [t for t in changed if t.dim() == 3 and t.shape[:2] == first.shape]
    facts.causal_leak = _leak(outputs, moved, 1, length)
