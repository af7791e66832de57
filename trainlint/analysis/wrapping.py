"""Where models are wrapped for training on several processes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

DISTRIBUTED_DATA_PARALLEL = frozenset(
    {
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.DistributedDataParallel",
        "apex.parallel.DistributedDataParallel",
    }
)


@dataclass(frozen=True)
class Wrapping:
    """``wrapper = DDP(model)``; ``wrapper`` is None where the result gets no name."""

    call: ast.Call
    model: ast.expr
    wrapper: ast.expr | None


def wrappings(file: FileModel) -> Iterator[Wrapping]:
    """All places of the file that wrap a model in ``DistributedDataParallel``."""
    for call in file.calls(*DISTRIBUTED_DATA_PARALLEL):
        model = call.args[0] if call.args else _keyword(call, "module")
        if model is None:
            continue
        parent = file.index.parents.get(call)
        is_bound = isinstance(parent, ast.Assign) and len(parent.targets) == 1
        yield Wrapping(call, model, parent.targets[0] if is_bound else None)  # type: ignore[union-attr]


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((item.value for item in call.keywords if item.arg == name), None)


def is_bound_between(file: FileModel, variable: ast.expr, first: ast.AST, second: ast.AST) -> bool:
    """Whether a variable gets another value between two places of one function, by their lines."""
    text = ast.unparse(variable)
    function = file.index.enclosing_function(first)
    begin, end = getattr(first, "end_lineno", 0), getattr(second, "lineno", 0)
    return any(
        isinstance(node.ctx, ast.Store)
        and begin < node.lineno < end
        and ast.unparse(node) == text
        and file.index.enclosing_function(node) is function
        for kind in (ast.Name, ast.Attribute)
        for node in file.nodes(kind)
        if isinstance(node, (ast.Name, ast.Attribute))
    )
