"""Path patterns in the syntax of ``.gitignore``, relative to a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_PLAIN_NAME = re.compile(r"[\w.-]+")


class PathPatterns:
    """Patterns that hold for paths below ``base``; the last one that matches decides.

    Plain names are looked up in a set, so that the default excludes cost next to nothing and
    ``pathspec`` is imported only when a pattern needs it.
    """

    def __init__(self, base: str, patterns: Iterable[str]) -> None:
        self.base = base
        self.patterns = tuple(patterns)
        self._names: frozenset[str] = frozenset()
        self._spec: GitIgnoreSpec | None = None
        if all(_PLAIN_NAME.fullmatch(pattern) for pattern in self.patterns):
            self._names = frozenset(self.patterns)
        else:
            self._spec = _compile(self._relative_pattern(pattern) for pattern in self.patterns)

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """True: a pattern matches; False: the last that matches is negated; None: none does.

        ``path`` is absolute. Only the path itself is judged by plain names, so ask for each
        folder on the way down.
        """
        if self._spec is None:
            return True if os.path.basename(path) in self._names else None
        relative = self._relative(path)
        return self._spec.check_file(relative + "/" if is_folder else relative).include

    def matches(self, path: str, is_folder: bool = False) -> bool:
        """Whether the path itself is meant."""
        return self.verdict(path, is_folder) is True

    def matches_any_part(self, path: str) -> bool:
        """Whether the file, or a folder between it and ``base``, is meant."""
        if self.matches(path):
            return True
        folder = os.path.dirname(path)
        while folder != self.base and folder != os.path.dirname(folder):
            if self.matches(folder, is_folder=True):
                return True
            folder = os.path.dirname(folder)
        return False

    def without_those_matching(self, folder: str) -> PathPatterns:
        """The patterns that do not mean this folder itself, for a folder the user asked for."""
        if self._spec is None or not self.matches(folder, is_folder=True):
            return self
        kept = [
            pattern
            for pattern in self.patterns
            if not PathPatterns(self.base, [pattern]).matches(folder, is_folder=True)
        ]
        return PathPatterns(self.base, kept)

    def _relative(self, path: str) -> str:
        if path.startswith(self.base + os.sep):
            path = path[len(self.base) + 1 :]
        return path.replace(os.sep, "/").lstrip("/")

    def _relative_pattern(self, pattern: str) -> str:
        """An absolute pattern as one relative to the base."""
        prefix = self.base.replace(os.sep, "/").rstrip("/") + "/"
        return "/" + pattern[len(prefix) :] if pattern.startswith(prefix) else pattern


def _compile(lines: Iterable[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(lines)
