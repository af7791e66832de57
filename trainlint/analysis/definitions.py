"""Classes and functions of the project, wherever they are defined."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from trainlint.analysis.index import Function

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

_MODULE_BASES = frozenset(
    {
        "torch.nn.Module",
        "lightning.LightningModule",
        "lightning.pytorch.LightningModule",
        "pytorch_lightning.LightningModule",
        "pytorch_lightning.core.LightningModule",
        "transformers.PreTrainedModel",
        "transformers.modeling_utils.PreTrainedModel",
        "mmengine.model.BaseModule",
        "mmcv.runner.BaseModule",
    }
)


@dataclass(eq=False, frozen=True)
class FunctionDefinition:
    """A function or method of the project; ``owner`` is its class, if it is a method."""

    node: Function
    file: FileModel
    owner: ClassDefinition | None = None

    @property
    def name(self) -> str:
        """The name after ``def``."""
        return self.node.name

    @cached_property
    def parameters(self) -> list[ast.arg]:
        """Positional parameters in order, ``self`` included."""
        arguments = self.node.args
        return [*arguments.posonlyargs, *arguments.args]

    @cached_property
    def decorators(self) -> list[str]:
        """The qualified names of the decorators that can be resolved."""
        expressions = [
            decorator.func if isinstance(decorator, ast.Call) else decorator
            for decorator in self.node.decorator_list
        ]
        return [name for item in expressions if (name := self.file.qualified(item))]

    @cached_property
    def calls(self) -> list[ast.Call]:
        """All calls in the body, those in nested functions included."""
        return self.file.index.nodes_in(self.node, ast.Call)

    @cached_property
    def names_read(self) -> frozenset[str]:
        """All plain names in the body."""
        return frozenset(node.id for node in self.file.index.nodes_in(self.node, ast.Name))

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """What the body calls and which attributes it reads; plain variables do not count."""
        called = {call.func.id for call in self.calls if isinstance(call.func, ast.Name)}
        called.update(node.attr for node in self.file.index.nodes_in(self.node, ast.Attribute))
        return frozenset(called)

    @cached_property
    def is_static(self) -> bool:
        """Whether the method takes no instance."""
        return "builtins.staticmethod" in self.decorators

    @cached_property
    def is_property(self) -> bool:
        """Whether reading the attribute calls the function."""
        return any(name.endswith(("property", "cached_property")) for name in self.decorators)

    @cached_property
    def is_generator(self) -> bool:
        """Whether the function's own body yields."""
        return any(
            self.file.index.enclosing_function(node) is self.node
            for kind in (ast.Yield, ast.YieldFrom)
            for node in self.file.index.nodes(kind)
        )


@dataclass(eq=False, frozen=True)
class ClassDefinition:
    """A class of the project."""

    node: ast.ClassDef
    file: FileModel

    @property
    def name(self) -> str:
        """The name after ``class``."""
        return self.node.name

    @cached_property
    def own_methods(self) -> dict[str, FunctionDefinition]:
        """Methods that this very class defines; of several with one name, the last."""
        return {
            item.name: FunctionDefinition(item, self.file, self)
            for item in _class_body(self.node)
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))
        }

    @cached_property
    def base_names(self) -> list[str | None]:
        """The qualified names of the bases, None where one cannot be told."""
        return [self.file.qualified(_unsubscripted(base)) for base in self.node.bases]

    @cached_property
    def bases(self) -> list[ClassDefinition]:
        """Those bases that the project itself defines."""
        found = [self.file.resolve_class(_unsubscripted(base)) for base in self.node.bases]
        return [base for base in found if base is not None and base is not self]

    def ancestors(self) -> list[ClassDefinition]:
        """This class and its bases in the project, nearest first."""
        order: list[ClassDefinition] = []
        queue: list[ClassDefinition] = [self]
        while queue:
            current = queue.pop(0)
            if current not in order:
                order.append(current)
                queue.extend(current.bases)
        return order

    def external_bases(self) -> Iterator[str | None]:
        """Qualified names of all bases outside the project; None for one that is unknown."""
        for ancestor in self.ancestors():
            for expression, name in zip(ancestor.node.bases, ancestor.base_names, strict=True):
                if ancestor.file.resolve_class(_unsubscripted(expression)) is None:
                    yield name

    def has_unknown_base(self) -> bool:
        """Whether something might be inherited that the model cannot see."""
        return any(
            name != "torch.nn.Module" and name != "builtins.object"
            for name in self.external_bases()
        )

    def method(self, name: str) -> FunctionDefinition | None:
        """The method that a call on an instance reaches, if the project defines it."""
        for ancestor in self.ancestors():
            if name in ancestor.own_methods:
                return ancestor.own_methods[name]
        return None

    def method_after(self, owner: ClassDefinition, name: str) -> FunctionDefinition | None:
        """What ``super().name`` reaches from a method of ``owner``."""
        order = self.ancestors()
        rest = order[order.index(owner) + 1 :] if owner in order else []
        for ancestor in rest:
            if name in ancestor.own_methods:
                return ancestor.own_methods[name]
        return None

    @cached_property
    def is_module(self) -> bool:
        """Whether the class certainly derives from ``torch.nn.Module``."""
        return any(name is not None and is_module_base(name) for name in self.external_bases())


def is_module_base(name: str) -> bool:
    """Whether a class outside the project is known to be an ``nn.Module``."""
    if name in _MODULE_BASES:
        return True
    head, _, last = name.rpartition(".")
    if head == "torch.nn":
        return last[:1].isupper() and last not in _NOT_MODULES
    return name.startswith(_MODEL_LIBRARIES) and bool(_MODULE_NAME.search(last))


_MODEL_LIBRARIES = (
    "transformers.", "torchvision.models.", "torchvision.ops.", "timm.", "torch_geometric.nn.",
    "monai.networks.", "diffusers.", "segmentation_models_pytorch.", "torchaudio.models.",
)  # fmt: skip
# Class names of those libraries that are networks or layers, and not their configurations, outputs,
# processors or trainers.
_MODULE_NAME = re.compile(
    r"(Model|Net|Network|Layer|Block|Encoder|Decoder|Attention|Head|Conv|MessagePassing|Transformer|"
    r"Embeddings|Mlp|Module|Backbone|Classifier|UNet\w*|(ResNet|RCNN|VGG|DenseNet|Inception|ViT)\w*|"
    r"\w+For[A-Z]\w+)$"
)
_NOT_MODULES = frozenset({"Parameter", "UninitializedParameter", "Buffer", "UninitializedBuffer"})


def _unsubscripted(base: ast.expr) -> ast.expr:
    return base.value if isinstance(base, ast.Subscript) else base


def _class_body(node: ast.ClassDef) -> Iterator[ast.stmt]:
    """The statements of a class body, those under ``if`` and ``try`` included."""
    pending = list(node.body)
    while pending:
        statement = pending.pop(0)
        yield statement
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            pending[:0] = [
                item for item in ast.iter_child_nodes(statement) if isinstance(item, ast.stmt)
            ]
