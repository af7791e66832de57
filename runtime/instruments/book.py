"""The register of parameters: one position in the trace for each parameter object."""

from __future__ import annotations

import weakref

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from trainlint.runtime.recorder import Recorder
from trainlint.runtime.trace import ParamFacts

_NORMS: tuple[type, ...] = (
    nn.modules.batchnorm._NormBase,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.LocalResponseNorm,
)


def is_norm(module: nn.Module) -> bool:
    """Whether a module normalises, by its type or by the name of its type."""
    return isinstance(module, _NORMS) or "norm" in type(module).__name__.lower()


def is_sharded(tensor: torch.Tensor | None) -> bool:
    """Whether each rank holds a slice of the tensor."""
    return hasattr(tensor, "_local_tensor")


def _kind(name: str, param: torch.Tensor, owner: nn.Module | None) -> str:
    if owner is not None and is_norm(owner):
        return "norm"
    if isinstance(owner, (nn.Embedding, nn.EmbeddingBag)):
        return "embedding"
    if name.rsplit(".", 1)[-1].startswith("bias"):
        return "bias"
    return "weight" if param.dim() >= 2 else "vector"


class ParamBook:
    """Gives each parameter its position, name and kind."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._known: dict[int, tuple[int, weakref.ref[torch.Tensor]]] = {}
        self._tensors: list[weakref.ref[torch.Tensor]] = []
        self._places: dict[tuple[int, str], int] = {}
        self._named_roots: dict[int, int] = {}
        self._module_names: dict[int, tuple[weakref.ref[nn.Module], str]] = {}

    @property
    def facts(self) -> list[ParamFacts]:
        """The records in the trace."""
        return self.recorder.trace.params

    def index_of(self, param: torch.Tensor, name: str = "", owner: nn.Module | None = None) -> int:
        """The position of a parameter; a new one is registered."""
        known = self._known.get(id(param))
        if known is not None and known[1]() is param:
            index = known[0]
        else:
            index = len(self._tensors)
            reference = weakref.ref(param)
            dtype = str(param.dtype).removeprefix("torch.")
            self.facts.append(ParamFacts("", [], 0, dtype))
            self._known[id(param)] = (index, reference)
            self._tensors.append(reference)
        record = self.facts[index]
        record.requires_grad = param.requires_grad
        if is_lazy(param):
            return index  # it gets its size, and its name, when its module has run
        if not record.numel:
            record.shape, record.numel = list(param.shape), param.numel()
        if name and not record.name:
            record.name = name
            record.kind = _kind(name, param, owner)
            record.module = type(owner).__name__ if owner is not None else ""
        return index

    def look_up(self, param: torch.Tensor) -> ParamFacts | None:
        """The record of a parameter, if it has one."""
        known = self._known.get(id(param))
        return self.facts[known[0]] if known is not None and known[1]() is param else None

    def index_in(self, module: nn.Module, name: str, param: torch.Tensor) -> int:
        """The position of a parameter of a module that is running.

        FSDP puts the gathered weights in the place of the sharded ones while a module runs; they
        are the same parameter.
        """
        known = self._places.get((id(module), name))
        held = None if known is None else self.tensor(known)
        if known is not None and is_sharded(held) and not is_sharded(param):
            return known
        return self.index_of(param, name, module)

    def tensor(self, index: int) -> torch.Tensor | None:
        """The live parameter at a position."""
        return self._tensors[index]()

    def live(self) -> list[tuple[int, torch.Tensor]]:
        """Every parameter that still exists, and has values."""
        pairs = ((i, reference()) for i, reference in enumerate(self._tensors))
        return [(i, t) for i, t in pairs if t is not None and not is_lazy(t)]

    def name_root(self, root: nn.Module, root_name: str) -> None:
        """Learn the names below a root, once and whenever its size changes.

        What is lazy changes its class when it gets its values.
        """
        modules = list(root.modules())
        size = len(modules) + sum(hasattr(type(m), "cls_to_become") for m in modules)
        if self._named_roots.get(id(root)) == size:
            return
        self._named_roots[id(root)] = size
        for path, module in root.named_modules():
            self._module_names.setdefault(id(module), (weakref.ref(module), path or root_name))
            for local, param in module._parameters.items():
                if param is not None:
                    full = f"{path}.{local}" if path else local
                    index = self.index_of(param, full, module)
                    self.facts[index].root = self.facts[index].root or root_name
                    self._places[id(module), local] = index

    def module_name(self, module: nn.Module) -> str:
        """The qualified name below the root, or the class name."""
        known = self._module_names.get(id(module))
        if known is not None and known[0]() is module:
            return known[1]
        return type(module).__name__

    def refresh(self) -> None:
        """Bring what can change during a run up to date."""
        for index, reference in enumerate(self._tensors):
            tensor = reference()
            self.facts[index].alive = tensor is not None
            if tensor is not None:
                self.facts[index].requires_grad = tensor.requires_grad
