"""Loss functions, softmax and dropout: what they are given."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from trainlint.runtime.instruments.graphs import maker_of
from trainlint.runtime.instruments.modules import Modules, in_backward, under_transform
from trainlint.runtime.instruments.tensors import plain, sizes
from trainlint.runtime.patches import Patches
from trainlint.runtime.places import user_place
from trainlint.runtime.recorder import Recorder, guarded
from trainlint.runtime.trace import DropoutCall, LossCall, Place, TensorFacts

# Each call site is looked at this often, with and without gradients.
LOOKS = 5
# Rows of a prediction that are looked at; a language model has thousands.
ROWS = 4096
LOSSES = (
    "cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div",
)  # fmt: skip
_CLASS_LOSSES = ("cross_entropy", "nll_loss")


def measure(tensor: torch.Tensor, dim: int | None = None) -> TensorFacts:
    """Range, mean and, over the class dimension, how far the rows are from summing to one."""
    facts = TensorFacts(
        sizes(tensor), str(tensor.dtype).removeprefix("torch."), tensor.requires_grad
    )
    data = plain(tensor)
    if not data.numel():
        return facts
    if dim is not None and data.dim() > dim and data.is_floating_point():
        rows = data.movedim(dim, -1).reshape(-1, data.shape[dim])[:ROWS].float()
        facts.row_sum_error = float((rows.sum(-1) - 1).abs().max())
        facts.row_exp_sum_error = float(rows.logsumexp(-1).abs().max())
    data = data.float() if not data.is_complex() else data.abs()
    facts.low, facts.high, facts.mean = (
        float(v) for v in torch.stack([data.min(), data.max(), data.mean()])
    )
    facts.distinct = int(data.reshape(-1)[:ROWS].unique().numel())
    return facts


class Losses:
    """Wraps the functional losses, through which the loss modules go too."""

    def __init__(self, recorder: Recorder, modules: Modules) -> None:
        self.recorder = recorder
        self.modules = modules
        self.tokens: torch.Tensor | None = None
        self.hold_target: Callable[[Any], Any] | None = None
        self._looks: dict[tuple[str, str, bool], int] = {}
        self._depth = 0
        self._dropouts: dict[str, DropoutCall] = {}

    def install(self, patches: Patches) -> None:
        """Wrap losses, softmax and dropout."""
        for name in LOSSES:
            patches.wrap(functional, name, self._make(name))
        for owner in (functional, torch, torch.Tensor):
            for name in ("softmax", "log_softmax"):
                patches.wrap(owner, name, self._make(name))
        patches.wrap(functional, "dropout", self._make_dropout)
        patches.wrap(functional, "scaled_dot_product_attention", self._make_attention)

    def _make(self, name: str) -> Any:
        def make(original: Any) -> Any:
            signature = _signature(original)

            def call(*args: Any, **kwargs: Any) -> Any:
                looked = None
                if self._depth == 0 and self.recorder.active() and not in_backward():
                    looked = self._look(name, signature, args, kwargs)
                    args, kwargs = self._held(name, args, kwargs)
                self._depth += 1
                try:
                    result = original(*args, **kwargs)
                finally:
                    self._depth -= 1
                if looked is not None:
                    self._note_value(looked, result)
                return result

            return call

        return make

    def _held(self, name: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The same call with the target of the fixed batch, where a phase holds one."""
        if self.hold_target is None or name not in LOSSES:
            return args, kwargs
        if "target" in kwargs:
            return args, {**kwargs, "target": self.hold_target(kwargs["target"])}
        if len(args) > 1:
            return (args[0], self.hold_target(args[1]), *args[2:]), kwargs
        return args, kwargs

    @guarded
    def _look(
        self, name: str, signature: inspect.Signature | None, args: Any, kwargs: Any
    ) -> LossCall | None:
        """Record a call of a loss, whose value is not known yet, or of softmax."""
        if under_transform():
            return None
        place = user_place()
        grad = torch.is_grad_enabled()
        key = (name, f"{place and (place.file, place.line)}", grad)
        self._looks[key] = self._looks.get(key, 0) + 1
        if self._looks[key] > LOOKS:
            return None
        given = _arguments(signature, args, kwargs)
        with torch.no_grad():
            if "softmax" in name:
                self._note_softmax(name, place, grad, given)
                return None
            return self._note_loss(name, place, grad, given)

    @guarded
    def _note_value(self, call: LossCall, result: Any) -> None:
        if isinstance(result, torch.Tensor) and result.numel() == 1:
            call.value = float(result.detach())

    def _note_softmax(
        self, name: str, place: Place | None, grad: bool, given: dict[str, Any]
    ) -> None:
        tensor, dim = given.get("input"), given.get("dim")
        if not isinstance(tensor, torch.Tensor) or not isinstance(dim, int) or not tensor.dim():
            return
        facts = TensorFacts(sizes(tensor), str(tensor.dtype), tensor.requires_grad)
        options: dict[str, float | str | None] = {"dim": dim % tensor.dim()}
        options["outside"] = float(not self.modules.stack)
        self._append(LossCall(name, place, self.recorder.step, grad, facts, None, options=options))

    def _note_loss(
        self, name: str, place: Place | None, grad: bool, given: dict[str, Any]
    ) -> LossCall | None:
        prediction, target = given.get("input"), given.get("target")
        if not isinstance(prediction, torch.Tensor) or not isinstance(target, torch.Tensor):
            return None
        dim = _class_dim(name, prediction)
        soft = target.is_floating_point() and target.shape == prediction.shape
        call = LossCall(
            name,
            place,
            self.recorder.step,
            grad,
            measure(prediction, dim),
            measure(target, dim if soft else None),
            prediction.shape[dim] if dim is not None else None,
            maker_of(prediction),
            maker_of(target),
        )
        ignore = given.get("ignore_index", -100)
        if name in _CLASS_LOSSES and not soft and call.target is not None:
            self._note_indices(call, target, int(ignore))
        for option in ("reduction", "label_smoothing", "log_target"):
            if given.get(option) is not None:
                call.options[option] = given[option]
        call.options["weighted"] = float(given.get("weight") is not None)
        self._append(call)
        return call

    def _note_indices(self, call: LossCall, target: torch.Tensor, ignore: int) -> None:
        facts = call.target
        if facts is None:
            return
        kept = target[target != ignore]
        facts.ignored = 1 - kept.numel() / max(1, target.numel())
        if kept.numel():
            facts.low, facts.high = float(kept.min()), float(kept.max())
            shares = torch.unique(kept, return_counts=True)[1].float() / kept.numel()
            call.options["entropy"] = float(-(shares * shares.log()).sum())
            call.options["top_share"] = float(shares.max())
        if self.tokens is not None:
            call.shift = _shifts(self.tokens, target, ignore)

    def _append(self, call: LossCall) -> None:
        self.recorder.trace.losses.append(call)

    def _make_dropout(self, original: Any) -> Any:
        def dropout(*args: Any, **kwargs: Any) -> Any:
            if self._evaluating():
                p = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
                on = kwargs.get("training", args[2] if len(args) > 2 else True)
                explicit = "training" in kwargs or len(args) > 2
                self._note_dropout("dropout", float(p) if on else 0.0, explicit)
            return original(*args, **kwargs)

        return dropout

    def _make_attention(self, original: Any) -> Any:
        def scaled_dot_product_attention(*args: Any, **kwargs: Any) -> Any:
            if self._evaluating():
                p = kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0)
                self._note_dropout("scaled_dot_product_attention", float(p), False)
            return original(*args, **kwargs)

        return scaled_dot_product_attention

    def _evaluating(self) -> bool:
        stack = self.modules.stack
        inside = bool(stack) and self.recorder.active()
        return inside and not stack[-1].training and not stack[0].training

    @guarded
    def _note_dropout(self, function: str, p: float, explicit: bool) -> None:
        if not p:
            return
        place = user_place()
        key = f"{place and (place.file, place.line)}"
        if key in self._dropouts:
            self._dropouts[key].count += 1
            return
        owner = type(self.modules.stack[-1]).__name__
        call = DropoutCall(place, p, explicit, owner, function)
        self._dropouts[key] = call
        self.recorder.trace.dropouts.append(call)


def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _arguments(signature: inspect.Signature | None, args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments by name; built-in softmax has no signature and takes (input, dim)."""
    if signature is not None:
        try:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return dict(bound.arguments)
        except TypeError:
            pass
    return {**dict(zip(("input", "dim"), args, strict=False)), **kwargs}


def _class_dim(name: str, prediction: torch.Tensor) -> int | None:
    if name in _CLASS_LOSSES:
        return 1 if prediction.dim() > 1 else 0
    if name == "kl_div":
        return prediction.dim() - 1
    return None


def _shifts(tokens: torch.Tensor, target: torch.Tensor, ignore: int) -> dict[str, float]:
    """How often the target equals the token 0, 1 or 2 places further on."""
    batch, length = tokens.shape
    for width in (length, length - 1, length - 2):
        if width > 2 and target.numel() == batch * width:
            shaped = target.reshape(batch, width)
            break
    else:
        return {}
    found = {}
    for shift in (0, 1, 2):
        size = min(width, length - shift)
        left, right = shaped[:, :size], tokens[:, shift : shift + size]
        kept = left != ignore
        if int(kept.sum()) > 0:
            found[str(shift)] = float((left == right)[kept].float().mean())
    return {k: v for k, v in found.items() if math.isfinite(v)}
