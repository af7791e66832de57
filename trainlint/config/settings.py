"""The settings that hold for a file: its configuration file under the command line."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from trainlint.config.options import Options, PerFileIgnores
from trainlint.config.path_patterns import PathPatterns
from trainlint.config.selection import RuleSet, SelectorTable
from trainlint.finding import Severity
from trainlint.output import FORMATS

CACHE_FOLDER = ".trainlint_cache"

DEFAULT_EXCLUDES = (
    ".bzr", ".direnv", ".eggs", ".git", ".git-rewrite", ".hg", ".ipynb_checkpoints", ".mypy_cache",
    ".nox", ".pants.d", ".pyenv", ".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox",
    CACHE_FOLDER, ".venv", ".vscode", "__pypackages__", "_build", "buck-out", "dist",
    "node_modules", "site-packages", "venv",
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What holds for the files below ``root``.

    ``file`` are the options of the configuration file (empty where there is none), whose folder
    is ``root``; without a file, ``root`` is the working directory. ``command_line`` overrides
    them, and its relative paths and patterns start at ``working_directory``. ``selectors`` imports
    or reads the list of rules when it is first called.
    """

    root: str
    working_directory: str
    file: Options
    command_line: Options
    selectors: Callable[[], SelectorTable]

    @cached_property
    def rule_set(self) -> RuleSet:
        """The selected rules, before any ignores per file.

        Raises:
            ConfigError: a selector names no installed rule.
        """
        return self.selectors().rule_set((self.file, self.command_line))

    @cached_property
    def exclude(self) -> tuple[PathPatterns, ...]:
        """What to leave out of a walk: each group of patterns relative to its own folder."""
        groups = [
            (self.root, self.file.extend_exclude),
            (self.working_directory, self.command_line.extend_exclude),
        ]
        if self.command_line.exclude is not None:
            groups.insert(0, (self.working_directory, self.command_line.exclude))
        else:
            patterns = DEFAULT_EXCLUDES if self.file.exclude is None else self.file.exclude
            groups.insert(0, (self.root, patterns))
        return tuple(PathPatterns(base, patterns) for base, patterns in groups if patterns)

    def exclude_below(self, named: str) -> tuple[PathPatterns, ...]:
        """``exclude`` for a walk of a folder that the user named, even if it is excluded."""
        return tuple(patterns.without_those_matching(named) for patterns in self.exclude)

    @property
    def force_exclude(self) -> bool:
        """Whether ``exclude`` also holds for files that are named on the command line."""
        return self._first(self.command_line.force_exclude, self.file.force_exclude, False)

    @property
    def fail_on(self) -> Severity:
        """The least severity that makes the exit code 1."""
        return self.command_line.fail_on or self.file.fail_on or Severity.WARNING

    @property
    def output_format(self) -> str:
        """A name of ``trainlint.output.FORMATS``."""
        return self.command_line.output_format or self.file.output_format or FORMATS[0]

    @property
    def fix(self) -> bool:
        """Whether to repair what can be repaired."""
        return self._first(self.command_line.fix, self.file.fix, False)

    @property
    def unsafe_fixes(self) -> bool:
        """Whether fixes that need a look are allowed too."""
        return self._first(self.command_line.unsafe_fixes, self.file.unsafe_fixes, False)

    @cached_property
    def cache_dir(self) -> str:
        """The absolute path of the cache folder."""
        if self.command_line.cache_dir is not None:
            return os.path.join(self.working_directory, self.command_line.cache_dir)
        return os.path.join(self.root, self.file.cache_dir or CACHE_FOLDER)

    def rule_set_of(self, path: str) -> RuleSet:
        """The rules for one file, after the ignores per file.

        Raises:
            ConfigError: a selector names no installed rule.
        """
        ignored = {
            code
            for patterns, codes in self._per_file_ignores
            if patterns.matches_any_part(path)
            for code in codes
        }
        return self.rule_set.without(ignored)

    @property
    def source(self) -> str:
        """The configuration file, or that there is none, for people."""
        return self.file.origin

    @property
    def per_file_ignores(self) -> PerFileIgnores:
        """Pairs of a path pattern and selectors, as written."""
        given = self.command_line.per_file_ignores
        return (self.file.per_file_ignores if given is None else given) or ()

    @cached_property
    def _per_file_ignores(self) -> list[tuple[PathPatterns, frozenset[str]]]:
        base, source = self.working_directory, self.command_line
        if source.per_file_ignores is None:
            base, source = self.root, self.file
        return [
            (PathPatterns(base, [pattern]), self._codes(selectors, source.origin))
            for pattern, selectors in source.per_file_ignores or ()
        ]

    def _codes(self, selectors: tuple[str, ...], origin: str) -> frozenset[str]:
        resolved = [self.selectors().resolve(text, origin) for text in selectors]
        return frozenset(rule.code for selector in resolved for rule in selector.rules)

    @staticmethod
    def _first(*values: bool | None) -> bool:
        return next(value for value in values if value is not None)
