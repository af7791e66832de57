"""Module calls: which modules ran, in which mode, under which root, and whether it trained them.

Global forward hooks only. Backward reach is seen by tensor hooks on root outputs: global
full-backward hooks break valid in-place code.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

from trainlint.runtime.instruments.book import ParamBook
from trainlint.runtime.instruments.tensors import sizes, tensors_in
from trainlint.runtime.patches import Patches
from trainlint.runtime.places import called_from, user_place
from trainlint.runtime.recorder import Recorder, guarded
from trainlint.runtime.trace import ModuleFacts, RootCall

MOST_CALLS = 3000
MOST_MODULES = 2000
# Unregistered modules are kept alive, so that a new one cannot be taken for an old one.
MOST_KEPT = 64
_DROPOUT = nn.modules.dropout._DropoutNd
_BATCH_NORM = nn.modules.batchnorm._BatchNorm
_SEQUENCE_LAYERS = (nn.MultiheadAttention, nn.RNNBase)
_MATMULS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
_WRAPPERS = (
    "DistributedDataParallel",
    "DataParallel",
    "OptimizedModule",
    "FullyShardedDataParallel",
)

# What a forward listener is told: the module, its inputs and its output.
ForwardListener = Callable[[nn.Module, Any, Any], None]


def in_backward() -> bool:
    """Whether autograd is running, as when a checkpointed forward is repeated."""
    return bool(torch._C._current_graph_task_id() != -1)


def under_transform() -> bool:
    """Whether a functorch transform (vmap, grad) is active, where values cannot be read."""
    functorch = getattr(torch._C, "_functorch", None)
    return functorch is not None and functorch.peek_interpreter_stack() is not None


class Modules:
    """A stack of the modules that are being called."""

    def __init__(self, recorder: Recorder, book: ParamBook) -> None:
        self.recorder = recorder
        self.book = book
        self.stack: list[nn.Module] = []
        self.call: RootCall | None = None
        self.call_inputs: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})
        self._keywords: dict[str, Any] = {}
        self.current_pass: int | None = None
        self.roots: dict[int, nn.Module] = {}
        self.on_leaf: list[ForwardListener] = []
        self.on_root_start: list[Callable[[nn.Module, Any], None]] = []
        self.on_root_end: list[Callable[[nn.Module, RootCall, Any], None]] = []
        self._registered: dict[int, set[int]] = {}
        self._seen: set[tuple[int, bool]] = set()
        self._facts: dict[int, ModuleFacts] = {}
        self._by_place: dict[tuple[str, str], ModuleFacts] = {}
        self._kept: list[nn.Module] = []
        self._order = 0

    def install(self, patches: Patches) -> None:
        """Hook every module call."""
        patches.later(register_module_forward_pre_hook(self._pre).remove)
        if "with_kwargs" in inspect.signature(register_module_forward_hook).parameters:
            after = register_module_forward_hook(self._post, with_kwargs=True, always_call=True)
        else:  # older torch: the keywords of outermost calls are taken on the way in
            patches.wrap(nn.Module, "__call__", self._make_call)
            after = register_module_forward_hook(self._post_positional, always_call=True)
        patches.later(after.remove)

    def _make_call(self, original: Any) -> Any:
        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if not self.stack:
                self._keywords = kwargs
            return original(module, *args, **kwargs)

        return call

    def _post_positional(self, module: nn.Module, inputs: Any, output: Any) -> None:
        self._post(module, inputs, self._keywords, output)

    def _pre(self, module: nn.Module, inputs: Any) -> None:
        if in_backward() or under_transform():
            return
        if not self.recorder.active() and not self.stack and _may_train(module):
            self.recorder.claim()
        if not self.recorder.active():
            return
        self.stack.append(module)
        if len(self.stack) == 1:
            self._root_starts(module, inputs)

    def _post(self, module: nn.Module, inputs: Any, keywords: dict[str, Any], output: Any) -> None:
        if not self.recorder.active() or in_backward() or under_transform():
            return
        self._module_ends(module, inputs, output)
        while self.stack and self.stack.pop() is not module:
            pass  # a module below raised before its own hook ran
        if not self.stack and self.call is not None:
            self.call_inputs = (inputs, keywords)
            self._root_ends(module, output)
            self.call_inputs = ((), {})

    @guarded
    def _root_starts(self, module: nn.Module, inputs: Any) -> None:
        self.call = None
        matters = isinstance(module, _DROPOUT) or next(module.parameters(), None) is not None
        if not matters:
            return
        name = type(module).__name__
        self.book.name_root(module, name)
        self.roots[id(module)] = module
        recorder = self.recorder
        self.call = RootCall(
            name,
            id(module),
            user_place(),
            recorder.step,
            recorder.lap,
            torch.is_grad_enabled(),
            module.training,
            self.current_pass,
            averaging=called_from("swa_utils"),
            autocast=_autocast(),
        )
        for listener in self.on_root_start:
            listener(module, inputs)

    @guarded
    def _root_ends(self, module: nn.Module, output: Any) -> None:
        call, self.call = self.call, None
        if call is None:
            return
        outputs = [t for t in tensors_in(output) if t.requires_grad]
        call.output_grad = bool(outputs)
        for listener in self.on_root_end:
            listener(module, call, output)
        if len(self.recorder.trace.calls) >= MOST_CALLS:
            return
        self.recorder.trace.calls.append(call)
        for tensor in outputs:
            tensor.register_hook(lambda _, call=call: _mark(call))

    @guarded
    def _module_ends(self, module: nn.Module, inputs: Any, output: Any) -> None:
        if self.call is not None:
            self._note_mode(module, self.call)
            if self.call.autocast and isinstance(module, _MATMULS):
                _note_precision(self.call, output)
        self._note_module(module)
        if isinstance(module, _SEQUENCE_LAYERS) and not module.batch_first:
            self._note_sequence(module, inputs)
        if self.call is not None and not module._modules:
            for listener in self.on_leaf:
                listener(module, inputs, output)

    def _note_sequence(self, module: nn.Module, inputs: Any) -> None:
        facts, first = self._facts.get(id(module)), next(tensors_in(inputs), None)
        if facts is not None and not facts.sequence_first and first is not None:
            facts.sequence_first = sizes(first)

    def _note_mode(self, module: nn.Module, call: RootCall) -> None:
        if isinstance(module, _DROPOUT) and module.p > 0:
            call.dropout_on += module.training
            call.dropout_off += not module.training
        elif isinstance(module, _BATCH_NORM) and module.track_running_stats:
            call.norm_on += module.training
            call.norm_off += not module.training
        else:
            return
        name = self.book.module_name(module)
        if module.training:
            call.first_on = call.first_on or name
        else:
            call.first_off = call.first_off or name

    def _note_module(self, module: nn.Module) -> None:
        grad = torch.is_grad_enabled()
        if (id(module), grad) in self._seen:
            return
        self._seen.add((id(module), grad))
        own = [(n, p) for n, p in module._parameters.items() if p is not None]
        if own:
            self._order += 1
        positions = [self.book.index_in(module, name, param) for name, param in own]
        for position in positions:
            facts = self.book.facts[position]
            facts.order = self._order if facts.order is None else facts.order
            facts.ran_with_grad |= grad
            facts.ran_without_grad |= not grad
        self._describe(module, positions)

    def _describe(self, module: nn.Module, params: list[int]) -> None:
        if id(module) in self._facts or len(self.recorder.trace.modules) >= MOST_MODULES:
            return
        root = self.stack[0] if self.stack else module
        if not module.training and _has_spectral_hook(module):
            self.recorder.event("spectral-norm-first-in-eval", detail=self.book.module_name(module))
        registered = self._is_registered(module, root)
        matters = bool(params) or isinstance(module, _DROPOUT)
        if not registered and not matters:
            return
        name = self.book.module_name(module)
        place = None if registered else user_place()
        facts = ModuleFacts(name, type(module).__name__, type(root).__name__, params, registered)
        facts.place = place
        if not registered:
            for index in params:
                self.book.facts[index].registered = False
            facts.fresh = self._created_here(facts)
            if len(self._kept) < MOST_KEPT:
                self._kept.append(module)
        self._facts[id(module)] = facts
        self.recorder.trace.modules.append(facts)

    def _created_here(self, facts: ModuleFacts) -> bool:
        """Whether this line has already called another instance, at an earlier step."""
        key = (facts.cls, f"{facts.place and (facts.place.file, facts.place.line)}")
        first = self._by_place.setdefault(key, facts)
        first.instances += first is not facts and self.recorder.step > 0
        return first is not facts and self.recorder.step > 0

    def _is_registered(self, module: nn.Module, root: nn.Module) -> bool:
        known = self._registered.get(id(root))
        if known is None or id(module) not in known:
            known = {id(m) for m in root.modules()}
            self._registered[id(root)] = known
        replica = getattr(module, "_is_replica", False)
        return id(module) in known or replica or self._below_other_root(module)

    def _below_other_root(self, module: nn.Module) -> bool:
        return any(
            id(module) in self._registered.get(id(other), ())
            for other in self.stack
            if type(other).__name__ in _WRAPPERS
        )


def _may_train(module: nn.Module) -> bool:
    """Whether a call may be the first of a training loop."""
    return module.training and torch.is_grad_enabled() and any(True for _ in module.parameters())


def _autocast() -> bool:
    """Whether autocast is on, for the CPU or a GPU."""
    try:
        return torch.is_autocast_enabled("cuda") or torch.is_autocast_enabled("cpu")
    except TypeError:  # torch before 2.4
        return torch.is_autocast_enabled() or torch.is_autocast_cpu_enabled()


def _has_spectral_hook(module: nn.Module) -> bool:
    """Whether the module carries the old spectral norm, which initialises in training mode only."""
    return any(type(h).__name__ == "SpectralNorm" for h in module._forward_pre_hooks.values())


def _note_precision(call: RootCall, output: Any) -> None:
    first = next(tensors_in(output), None)
    if first is not None:
        call.full_precision += first.dtype == torch.float32
        call.low_precision += first.dtype in (torch.bfloat16, torch.float16)


def _mark(call: RootCall) -> None:
    call.reached = True
