"""Finds the files to check below the paths that the user gave."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from trainlint.config import Settings, SettingsResolver
from trainlint.gitignore import IGNORE_FILE, REPOSITORY, IgnoreRules

CHECKED_SUFFIXES = (".py", ".ipynb")

_NEVER_SOURCE = frozenset(
    {
        ".git", ".hg", ".svn", ".venv", "venv", "env", ".tox", ".nox", ".eggs", "build", "dist",
        "node_modules", "site-packages", "__pycache__",
        ".mypy_cache", ".ruff_cache", ".pytest_cache",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileStat:
    """The state by which a changed file is noticed without reading it."""

    size: int
    modified_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileStat:
        """The part of a status that matters here."""
        return cls(status.st_size, status.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class FileProblem:
    """Why a path could not be checked, in one line. ``path`` is absolute."""

    path: str
    message: str


@dataclass(slots=True)
class Discovery:
    """The files to check, by absolute path, and what stood in the way."""

    files: dict[str, FileStat] = field(default_factory=dict)
    problems: list[FileProblem] = field(default_factory=list)


def discover(paths: Sequence[str], settings: SettingsResolver, working_directory: str) -> Discovery:
    """Walk the paths; a file named directly is checked even if it is excluded.

    Raises:
        ConfigError: a configuration file on the way cannot be used.
    """
    walk = _Walk(settings)
    for path in paths:
        walk.add(os.path.normpath(os.path.join(working_directory, path)))
    walk.drop_repeated_links()
    return walk.found


class _Walk:
    def __init__(self, settings: SettingsResolver) -> None:
        self.found = Discovery()
        self._settings = settings
        self._links: list[str] = []

    def add(self, path: str) -> None:
        """A path that the user named."""
        try:
            status = os.stat(path)
        except OSError as error:
            self._cannot_read(path, error)
            return
        is_folder = stat.S_ISDIR(status.st_mode)
        settings = self._settings.for_folder(path if is_folder else os.path.dirname(path))
        if settings.force_exclude and is_left_out(path, is_folder, settings):
            return
        if is_folder:
            self._walk_named(path)
        elif stat.S_ISREG(status.st_mode):
            self.found.files[path] = FileStat.of(status)
        else:
            self._not_regular(path)

    def drop_repeated_links(self) -> None:
        """A link to a file that is checked anyway would report everything twice."""
        for link in self._links:
            target = os.path.realpath(link)
            if target != link and target in self.found.files:
                self.found.files.pop(link, None)

    def _walk_named(self, top: str) -> None:
        ignored = IgnoreRules.above(top)
        if ignored.ignores(top, is_folder=True):
            ignored = ignored.allowing(top)
        pending = [(top, ignored)]
        while pending:
            folder, inherited = pending.pop()
            entries = self._entries(folder)
            ignored = _ignore_rules_inside(folder, entries, inherited)
            exclude = self._settings.for_folder(folder).exclude_below(top) if entries else ()
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                if not is_folder and not entry.name.endswith(CHECKED_SUFFIXES):
                    continue
                if any(patterns.matches(entry.path, is_folder) for patterns in exclude):
                    continue
                if ignored.ignores(entry.path, is_folder):
                    continue
                if is_folder:
                    pending.append((entry.path, ignored))
                else:
                    self._add_entry(entry)

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as scan:
                return list(scan)
        except OSError as error:
            self._cannot_read(folder, error)
            return []

    def _add_entry(self, entry: os.DirEntry[str]) -> None:
        try:
            status = entry.stat()
        except OSError as error:
            self._cannot_read(entry.path, error)
            return
        if stat.S_ISREG(status.st_mode):
            self.found.files[entry.path] = FileStat.of(status)
            if entry.is_symlink():
                self._links.append(entry.path)
        elif not stat.S_ISDIR(status.st_mode):
            self._not_regular(entry.path)

    def _cannot_read(self, path: str, error: OSError) -> None:
        self.found.problems.append(FileProblem(path, f"cannot read: {error.strerror}"))

    def _not_regular(self, path: str) -> None:
        self.found.problems.append(FileProblem(path, "cannot read: not a regular file"))


def is_left_out(path: str, is_folder: bool, settings: Settings) -> bool:
    """Whether the path, or a folder that it is in, is excluded by the settings."""
    return any(
        patterns.matches(path, is_folder) or patterns.matches_any_part(path)
        for patterns in settings.exclude
    )


def _ignore_rules_inside(
    folder: str, entries: list[os.DirEntry[str]], inherited: IgnoreRules
) -> IgnoreRules:
    names = {entry.name for entry in entries}
    if REPOSITORY in names:
        # A repository inside the repository: the outer one's files say nothing about it.
        inherited = IgnoreRules.above(folder)
    return inherited.entering(folder) if IGNORE_FILE in names else inherited


def python_files_below(root: str) -> Iterator[tuple[str, FileStat]]:
    """Every Python file of the project at ``root`` that can be looked at.

    Excludes and ``.gitignore`` do not matter here: this is where imports may lead.
    """
    pending = [root]
    while pending:
        try:
            with os.scandir(pending.pop()) as scan:
                entries = list(scan)
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _NEVER_SOURCE:
                    pending.append(entry.path)
            elif entry.name.endswith(".py"):
                try:
                    status = entry.stat()
                except OSError:
                    continue
                if stat.S_ISREG(status.st_mode):
                    yield entry.path, FileStat.of(status)
