"""How a file itself would write a library's name: repairs speak the file's own words."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel


def spelled(file: FileModel, dotted: str) -> str | None:
    """How the file would write ``torch.nn.ModuleList``, say: ``nn.ModuleList``.

    The shortest way that its imports allow; None where none at the top of the file leads there.
    """
    found: list[str] = []
    for name, bound in file.index.names_bound_in(file.tree).items():
        if not bound or not all(isinstance(item, ast.alias) for item in bound):
            continue
        alias = bound[0]
        assert isinstance(alias, ast.alias)
        source = file.names.imported_by(alias)
        if dotted == source:
            found.append(name)
        elif dotted.startswith(source + "."):
            found.append(name + dotted[len(source) :])
    return min(found, key=len, default=None)


def is_name_chain(node: ast.AST) -> bool:
    """Whether an expression is ``a`` or ``a.b.c``: naming it again has no effect of its own."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
