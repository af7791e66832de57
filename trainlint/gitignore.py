"""Honours ``.gitignore`` files, the nested ones too."""

from __future__ import annotations

import os
from dataclasses import dataclass

from trainlint.config.path_patterns import PathPatterns
from trainlint.project_root import ProjectRoots

IGNORE_FILE = ".gitignore"
REPOSITORY = ".git"


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The ``.gitignore`` files that hold in a folder: the deepest that has a verdict decides."""

    patterns: tuple[PathPatterns, ...] = ()

    @classmethod
    def above(cls, folder: str) -> IgnoreRules:
        """Those of the folders above, up to the top of the repository.

        Outside a repository, up to the project root: a stray file in a home directory must not
        hide a project.
        """
        top = _repository_top(folder) or ProjectRoots().nearest_marked(folder) or folder
        rules = cls(_read(top, os.path.join(top, REPOSITORY, "info", "exclude")))
        for ancestor in _folders_between(top, folder):
            rules = rules.entering(ancestor)
        return rules

    def entering(self, folder: str) -> IgnoreRules:
        """The rules in this folder, with those of its own ``.gitignore``."""
        own = _read(folder, os.path.join(folder, IGNORE_FILE))
        return IgnoreRules(self.patterns + own) if own else self

    def ignores(self, path: str, is_folder: bool) -> bool:
        """Whether git would ignore this entry of the folder."""
        for patterns in reversed(self.patterns):
            verdict = patterns.verdict(path, is_folder)
            if verdict is not None:
                return verdict
        return False

    def allowing(self, folder: str) -> IgnoreRules:
        """The same, but for patterns that mean this folder: the user asked for it by name."""
        kept = tuple(patterns.without_those_matching(folder) for patterns in self.patterns)
        return IgnoreRules(kept)


def _repository_top(folder: str) -> str | None:
    while not os.path.exists(os.path.join(folder, REPOSITORY)):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def _folders_between(top: str, folder: str) -> list[str]:
    """From ``top`` down to the parent of ``folder``."""
    folders: list[str] = []
    while folder != top:
        folder = os.path.dirname(folder)
        folders.insert(0, folder)
    return folders


def _read(base: str, path: str) -> tuple[PathPatterns, ...]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return ()
    patterns = [line for line in lines if line.strip() and not line.startswith("#")]
    return (PathPatterns(base, patterns),) if patterns else ()
