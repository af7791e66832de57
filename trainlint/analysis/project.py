"""The project around a file: where its imports lead, and who calls its functions."""

from __future__ import annotations

import ast
import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from trainlint.analysis.definitions import ClassDefinition, FunctionDefinition
from trainlint.analysis.file_model import FileModel
from trainlint.analysis.import_graph import ImportGraph
from trainlint.analysis.requirements import Version, oldest_declared, requirement_files
from trainlint.analysis.source import SourceError, SourceFile
from trainlint.search import Search, heirs_in, holds_identifier, searched_files

Definition = ClassDefinition | FunctionDefinition

_NEVER_IN_PROJECT = frozenset(sys.stdlib_module_names) | {
    "torch",
    "torchvision",
    "torchaudio",
    "numpy",
    "scipy",
    "sklearn",
    "pandas",
    "matplotlib",
    "PIL",
    "cv2",
    "tqdm",
    "yaml",
    "einops",
    "wandb",
    "tensorboard",
    "tensorboardX",
    "apex",
    "jax",
    "omegaconf",
    "hydra",
    "seaborn",
    "skimage",
    "nltk",
    "h5py",
    "rich",
    "pytest",
    "accelerate",
    "transformers",
    "lightning",
    "pytorch_lightning",
    "deepspeed",
    "ignite",
    "fastai",
    "diffusers",
    "peft",
    "trl",
    "composer",
    "torchmetrics",
    "mmengine",
    "mmcv",
}
_MAX_HELD_CHARACTERS = 8_000_000
_MAX_HEIRS = 30


class Project:
    """All Python files below ``root``, read only as far as a question needs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.searches: set[Search] = set()
        self._checked: Path | None = None
        self._consulted_directly: set[Path] = set()
        self._looked_at: dict[Path, set[Path]] = {}
        self._files: dict[Path, FileModel | None] = {}
        self._held = 0
        self.relevance: dict[FunctionDefinition, bool] = {}
        self._resolved: dict[tuple[Path, str], Definition | None] = {}
        self._is_file: dict[Path, bool] = {}
        self._located: dict[tuple[Path, str], tuple[list[Path], Path | None]] = {}
        self._search_paths: dict[Path, list[Path]] = {}
        self._sources: dict[Path, bytes] | None = None
        self._imports: ImportGraph | None = None
        self._oldest: dict[str, Version | None] = {}

    def start_check(self) -> None:
        """Forget what the last check consulted, and files if too many are held."""
        self.searches = set()
        self._checked = None
        self._consulted_directly = set()
        if self._held > _MAX_HELD_CHARACTERS:
            self._forget_files()

    def model(self, source: SourceFile) -> FileModel:
        """The model of a file that the caller has read itself, to be checked.

        It is the one that other files already know, if they read the same text: what was found
        out about them stays true for it.

        Raises:
            SourceError: it cannot be parsed; then nobody else gets to see it either.
        """
        path = source.path.absolute()
        self._checked = path
        known = self._files.get(path)
        if known is not None and known.source.text == source.text:
            return known
        _ = source.tree
        if known is not None:
            self._forget_files()
        return self._add(path, source)

    @property
    def consulted(self) -> set[Path]:
        """Other files that the check looked at, or for, and what these look at in turn."""
        found = set(self._consulted_directly)
        pending = [*found, *([self._checked] if self._checked else [])]
        while pending:
            new = self._looked_at.get(pending.pop(), set()) - found
            found |= new
            pending.extend(new)
        return found

    def _add(self, path: Path, source: SourceFile) -> FileModel:
        module, package = self._dotted(path)
        model = FileModel(source, self, module, package)
        self._files[path] = model
        self._held += len(source.text)
        return model

    def _forget_files(self) -> None:
        self._files.clear()
        self._resolved.clear()
        self.relevance.clear()
        self._held = 0
        gc.collect()

    def load(self, path: Path) -> FileModel | None:
        """The model of another file of the project; None if it cannot be read or parsed."""
        self._consulted_directly.add(path)
        if path not in self._files:
            self._files[path] = None
            try:
                source = SourceFile.from_bytes(path, path.read_bytes())
                _ = source.tree
            except (OSError, SourceError):
                return None
            self._add(path, source)
        return self._files[path]

    def holding(self, node: ast.AST) -> FileModel | None:
        """The file, of those read so far, whose tree a node belongs to."""
        for model in self._files.values():
            if model is not None and node in model.index.parents:
                return model
        return None

    def resolve(self, dotted: str, origin: FileModel) -> Definition | None:
        """The class or function that a dotted name means, seen from ``origin``."""
        key = (origin.path, dotted)
        if key not in self._resolved:
            self._resolved[key] = self._resolve(dotted, origin, set())
        return self._resolved[key]

    def passed_on(self, module: str, name: str, origin: FileModel, depth: int = 0) -> str | None:
        """What ``from module import *`` binds a name to that the module itself only imports."""
        model = self._module(module.split("."), origin) if module and depth < 4 else None
        if model is None or model is origin:
            return None
        found = model.imported(name)
        if found is not None:
            return found
        for star in model.names.star_modules():
            found = self.passed_on(star, name, model, depth + 1)
            if found is not None:
                return found
        return None

    def oldest_declared(self, package: str) -> Version | None:
        """The lowest version of a package that the project declares; None where it does not say."""
        self._consulted_directly.update(requirement_files(self.root))
        if package not in self._oldest:
            self._oldest[package] = oldest_declared(self.root, package)
        return self._oldest[package]

    def files_mentioning(
        self, text: str, *one_of: str, where: Callable[[bytes], bool] | None = None
    ) -> Iterator[FileModel]:
        """All files of the project that hold a text, and one of some others if given.

        Identifiers count only whole. Files for whose content ``where`` is false are passed
        over before they are parsed.
        """
        search = Search(text, one_of)
        self.searches.add(search)
        for path, data in self._all_sources().items():
            if not search.finds(data) or (where is not None and not where(data)):
                continue
            model = self.load(path)
            if model is not None:
                yield model

    def connected(self, path: Path) -> set[Path]:
        """The files that run in one program with this one, told by who imports whom."""
        self.searches.add(Search("import"))
        if self._imports is None:
            self._imports = ImportGraph(self._all_sources())
        return self._imports.connected(path)

    def heirs(self, name: str) -> list[str]:
        """The names of the classes that list a class of this name among their bases, and so on."""
        found: list[str] = []
        pending = [name]
        while pending and len(found) < _MAX_HEIRS:
            parent = pending.pop()
            self.searches.add(Search(parent, ("class",)))
            for data in self._all_sources().values():
                if holds_identifier(data, parent.encode()):
                    new = [heir for heir in heirs_in(data, parent) if heir not in (name, *found)]
                    found += new
                    pending += new
        return found

    def _resolve(
        self, dotted: str, origin: FileModel, seen: set[tuple[Path, str]]
    ) -> Definition | None:
        if (origin.path, dotted) in seen or len(seen) > 20:
            return None
        seen.add((origin.path, dotted))
        if dotted.startswith(origin.module + "."):
            found = self._member(origin, dotted[len(origin.module) + 1 :].split("."), seen)
            if found is not None:
                return found
        parts = dotted.split(".")
        if parts[0] in _NEVER_IN_PROJECT or parts[0] == "builtins":
            return None
        for length in range(len(parts) - 1, 0, -1):
            model = self._module(parts[:length], origin)
            if model is not None:
                return self._member(model, parts[length:], seen)
        return None

    def _member(
        self, model: FileModel, attributes: list[str], seen: set[tuple[Path, str]]
    ) -> Definition | None:
        name = attributes[0]
        if len(attributes) == 2 and name in model.classes:
            return model.classes[name].method(attributes[1])
        if len(attributes) > 1:
            target = model.imported(name)
            return (
                self._resolve(".".join([target, *attributes[1:]]), model, seen) if target else None
            )
        if name in model.classes:
            return model.classes[name]
        if name in model.functions:
            return model.functions[name]
        target = model.imported(name)
        if target is not None:
            return self._resolve(target, model, seen)
        for module in model.names.star_modules():
            found = self._resolve(f"{module}.{name}", model, seen)
            if found is not None:
                return found
        return None

    def _module(self, parts: list[str], origin: FileModel) -> FileModel | None:
        key = (origin.path.parent, ".".join(parts))
        if key not in self._located:
            self._located[key] = self._locate(parts, origin)
        candidates, found = self._located[key]
        self._looked_at.setdefault(origin.path.absolute(), set()).update(candidates)
        return self.load(found) if found is not None else None

    def _locate(self, parts: list[str], origin: FileModel) -> tuple[list[Path], Path | None]:
        """The places where an import is looked for, up to the file that it finds, if any."""
        candidates: list[Path] = []
        # `recsys/engine.py` that imports `recsys.model` says itself where its scripts run.
        named = [above.parent for above in origin.path.parents if above.name == parts[0]]
        for folder in (*self._search_path(origin.path), *named):
            base = folder.joinpath(*parts)
            for candidate in (base / "__init__.py", base.with_name(base.name + ".py")):
                candidates.append(candidate)
                if self._exists(candidate):
                    return candidates, candidate
        return candidates, None

    def _search_path(self, path: Path) -> list[Path]:
        """Where a script's or package's imports are looked for: its folder, the root, src."""
        if path.parent not in self._search_paths:
            self._search_paths[path.parent] = self._find_search_path(path.parent)
        return self._search_paths[path.parent]

    def _find_search_path(self, folder: Path) -> list[Path]:
        folders = [folder]
        package = folder
        while (package / "__init__.py").is_file() and package != package.parent:
            package = package.parent
        folders.append(package)
        above = package
        while above != self.root and self.root in above.parents:
            above = above.parent
            folders.append(above)
        folders.extend([self.root, self.root / "src"])
        return list(dict.fromkeys(folders))

    def _exists(self, path: Path) -> bool:
        if path not in self._is_file:
            self._is_file[path] = path.is_file()
        return self._is_file[path]

    def _dotted(self, path: Path) -> tuple[str, str]:
        """The module's dotted name and the package that its relative imports start from."""
        folder = path.parent
        parts: list[str] = []
        while (folder / "__init__.py").is_file() and folder != folder.parent:
            parts.insert(0, folder.name)
            folder = folder.parent
        if not parts:
            parts = _script_package(path, self.root)
        package = ".".join(parts)
        if path.stem == "__init__":
            return package or path.parent.name, package
        return ".".join([*parts, path.stem]), package

    def _all_sources(self) -> dict[Path, bytes]:
        if self._sources is None:
            self._sources = {}
            for path in map(Path, searched_files(str(self.root))):
                with contextlib.suppress(OSError):
                    self._sources[path] = path.read_bytes()
        return self._sources


def _script_package(path: Path, root: Path) -> list[str]:
    """Folders without ``__init__.py`` are namespace packages below the root."""
    if root in path.parent.parents:
        return list(path.parent.relative_to(root).parts)
    return []
