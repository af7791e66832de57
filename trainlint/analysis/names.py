"""What a dotted expression refers to: imports, aliases and definitions of one file."""

from __future__ import annotations

import ast
import builtins
import re

from trainlint.analysis.index import TreeIndex

_PRIVATE_HOMES = (
    (re.compile(r"^torch\.nn\.modules\.\w+\."), "torch.nn."),
    (re.compile(r"^torch\.optim\.[a-z]\w*\.(?=[A-Z])"), "torch.optim."),
    (
        re.compile(r"^torch\.utils\.data\.(?:dataloader|dataset|distributed|sampler)\."),
        "torch.utils.data.",
    ),
    (re.compile(r"^torch\.autograd\.grad_mode\."), "torch."),
    (re.compile(r"^torch\.nn\.parallel\.distributed\."), "torch.nn.parallel."),
    (re.compile(r"^torch\.nn\.parameter\."), "torch.nn."),
    (re.compile(r"^torch\.functional\."), "torch."),
)
_NOT_OPTIMIZERS = ("torch.optim.lr_scheduler.", "torch.optim.swa_utils.")


def canonical(dotted: str) -> str:
    """The public name of a torch object, whichever module it was imported from."""
    if not dotted.startswith("torch.") or dotted.startswith(_NOT_OPTIMIZERS):
        return dotted
    for private, public in _PRIVATE_HOMES:
        shorter = private.sub(public, dotted)
        if shorter != dotted:
            return shorter
    return dotted


class Names:
    """Resolves names of one file lexically.

    ``package`` is the dotted package that relative imports start from, "" at top level.
    """

    def __init__(self, index: TreeIndex, module: str, package: str) -> None:
        self._index = index
        self._module = module
        self._package = package
        self._resolving: set[ast.AST] = set()
        self._cache: dict[ast.expr, str | None] = {}

    def qualified(self, node: ast.AST) -> str | None:
        """The dotted name that an expression refers to, or None where that is not certain.

        Names of this file's own definitions start with its module name, builtins with
        ``builtins.``.
        """
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        if node not in self._cache:
            self._cache[node] = self._resolve(node)
        return self._cache[node]

    def star_modules(self) -> list[str]:
        """Modules from which this file imports everything."""
        return [
            self.import_source(node)
            for node in self._index.nodes(ast.ImportFrom)
            if any(alias.name == "*" for alias in node.names)
        ]

    def star_import_of(self, name: str) -> str | None:
        """The dotted name of an otherwise unbound name, if only one star import can bind it.

        ``torch`` is torch from whatever module it comes.
        """
        stars = self.star_modules()
        if stars and name == "torch":
            return name
        return canonical(f"{stars[0]}.{name}") if len(stars) == 1 else None

    def import_source(self, node: ast.ImportFrom) -> str:
        """The absolute dotted module that a ``from ... import`` takes from."""
        if not node.level:
            return node.module or ""
        parts = self._package.split(".") if self._package else []
        parts = parts[: len(parts) - (node.level - 1)] if node.level > 1 else parts
        return ".".join([*parts, *([node.module] if node.module else [])])

    def _resolve(self, node: ast.Name | ast.Attribute) -> str | None:
        if isinstance(node, ast.Attribute):
            base = self.qualified(node.value)
            return canonical(f"{base}.{node.attr}") if base else None
        bound = self._index.bindings(node.id, self._index.scope(node))
        if not bound:
            return self._unbound(node.id)
        imported = [self.imported_by(item) for item in bound if isinstance(item, ast.alias)]
        if imported:
            others = [item for item in bound if not isinstance(item, ast.alias)]
            return imported[0] if all(self._is_fallback(item) for item in others) else None
        return self._defined(bound[0]) if len(bound) == 1 else None

    def _unbound(self, name: str) -> str | None:
        if hasattr(builtins, name):
            return f"builtins.{name}"
        return self.star_import_of(name)

    def imported_by(self, alias: ast.alias) -> str:
        """The dotted name that an import binds."""
        statement = self._index.parents[alias]
        if isinstance(statement, ast.ImportFrom):
            source = self.import_source(statement)
            return canonical(f"{source}.{alias.name}" if source else alias.name)
        return alias.name if alias.asname else alias.name.partition(".")[0]

    def _is_fallback(self, bound: ast.AST) -> bool:
        """``try: from apex import amp / except ImportError: amp = None`` keeps the import."""
        statement = self._index.statement(bound)
        inside: ast.AST | None = statement
        while inside is not None and not isinstance(inside, (ast.Try, ast.If)):
            inside = self._index.parents.get(inside)
        return inside is not None and not isinstance(bound, ast.arg)

    def _defined(self, bound: ast.AST) -> str | None:
        parent = self._index.parents.get(bound)
        if isinstance(bound, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            top_level = isinstance(self._index.scope(bound), ast.Module)
            return f"{self._module}.{bound.name}" if top_level else None
        is_alias = isinstance(parent, ast.Assign) and parent.targets == [bound]
        if not is_alias or bound in self._resolving:
            return None
        assert isinstance(parent, ast.Assign)
        self._resolving.add(bound)
        try:
            return self.qualified(parent.value)
        finally:
            self._resolving.discard(bound)
