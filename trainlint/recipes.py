"""The reference trainers as files to read and copy; they need torch, but nothing here does."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path

_DISTRIBUTIONS = {"PIL": "pillow", "sklearn": "scikit-learn"}
"""Packages whose name to install is not their name to import."""


@dataclass(frozen=True)
class Recipe:
    """One reference trainer."""

    path: Path

    @property
    def name(self) -> str:
        """The file's name in kebab case, as rules are named."""
        return self.path.stem.replace("_", "-")

    @property
    def family(self) -> str:
        """The folder: ``vision``, ``language`` and so on."""
        return self.path.parent.name

    @property
    def file(self) -> str:
        """Family and file name, as the README lists it."""
        return f"{self.family}/{self.path.name}"

    @cached_property
    def source(self) -> str:
        """The whole program."""
        return self.path.read_text(encoding="utf-8")

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (ast.get_docstring(self._tree) or "").partition("\n")[0]

    @property
    def requires(self) -> list[str]:
        """The distributions that it imports at its top: what has to be installed to run it."""
        tops = {
            name.partition(".")[0]
            for node in self._tree.body
            for name in _imported(node)
            if name.partition(".")[0] not in sys.stdlib_module_names
        }
        return sorted(_DISTRIBUTIONS.get(top, top) for top in tops)

    @cached_property
    def _tree(self) -> ast.Module:
        return ast.parse(self.source)


def _imported(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    if isinstance(statement, ast.ImportFrom) and statement.module:
        return [statement.module]
    return []


def installed_recipes() -> list[Recipe]:
    """Every recipe that is installed, by family and name."""
    folder = Path(str(files("trainlint.reference_trainers")))
    return [Recipe(path) for path in sorted(folder.glob("*/*.py")) if not path.name.startswith("_")]
