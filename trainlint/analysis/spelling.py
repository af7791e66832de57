"""How a file itself would write a library's name: repairs speak the file's own words."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel


def spelled(file: FileModel, dotted: str) -> str | None:
    """How the file's imports let it write ``dotted``: ``nn.ModuleList`` for ``torch.nn.ModuleList``.

    The shortest way; None where no import at the top of the file leads there.
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
