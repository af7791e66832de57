"""Which files of a project run together because one imports another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from trainlint.search import imported_words


class ImportGraph:
    """The imports of all files. Modules are told by their last name: two of one name are one."""

    def __init__(self, sources: Mapping[Path, bytes]) -> None:
        modules: defaultdict[bytes, list[Path]] = defaultdict(list)
        for path in sources:
            name = path.parent.name if path.stem == "__init__" else path.stem
            modules[name.encode()].append(path)
        self._imports: defaultdict[Path, set[Path]] = defaultdict(set)
        self._imported_by: defaultdict[Path, set[Path]] = defaultdict(set)
        for path, data in sources.items():
            for other in (item for word in imported_words(data) for item in modules.get(word, ())):
                self._add(path, other)

    def _add(self, importing: Path, imported: Path) -> None:
        self._imports[importing].add(imported)
        self._imported_by[imported].add(importing)

    def connected(self, path: Path) -> set[Path]:
        """All that a program which uses this file may run: what its importers import, and itself.

        Two scripts that import the same module are apart.
        """
        return _reached(_reached([path], self._imported_by), self._imports)


def _reached(start: Iterable[Path], edges: Mapping[Path, set[Path]]) -> set[Path]:
    found = set(start)
    pending = list(found)
    while pending:
        new = edges.get(pending.pop(), set()) - found
        found |= new
        pending.extend(new)
    return found
