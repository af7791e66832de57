"""How messages name a place: by its line, and by its file too where that is another one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel


class Placed(Protocol):
    """An event, call or loop of a trace."""

    @property
    def node(self) -> ast.AST: ...

    @property
    def file(self) -> FileModel: ...


def place(item: Placed, seen_from: FileModel) -> str:
    """``line 12``, or ``line 12 of train.py`` in a message about another file."""
    return place_of(item.node, item.file, seen_from)


def place_of(node: ast.AST, home: FileModel, seen_from: FileModel) -> str:
    """As `place`, of a node in the file ``home``."""
    line = f"line {getattr(node, 'lineno', 0)}"
    return line if home is seen_from else f"{line} of {home.path.name}"
