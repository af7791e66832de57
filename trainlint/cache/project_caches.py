"""The result caches of a run: one for each project and selection of rules."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from trainlint.cache.folder import CacheFolder
from trainlint.cache.results import ResultCache
from trainlint.config import RuleSet, SettingsResolver
from trainlint.discovery import FileStat
from trainlint.finding import Applicability
from trainlint.outcome import CheckOptions, EditMode, FileOutcome, FileTask


class ProjectCaches:
    """Looks answers up and keeps them, each in the cache folder that its settings name.

    ``fingerprint`` is of the installed rules.
    """

    def __init__(
        self,
        fingerprint: str,
        options: CheckOptions,
        settings: SettingsResolver,
        statuses: Mapping[str, FileStat],
    ) -> None:
        self._fingerprint = fingerprint
        self._options = options
        self._settings = settings
        self._statuses = statuses
        self._caches: dict[tuple[str, str, RuleSet], ResultCache] = {}

    def lookup(self, tasks: Sequence[FileTask]) -> dict[str, FileOutcome]:
        """The answers that still hold, by path, but for files that are to be edited."""
        groups: dict[ResultCache, list[FileTask]] = {}
        for task in tasks:
            groups.setdefault(self._cache(task), []).append(task)
        found: dict[str, FileOutcome] = {}
        for cache, members in groups.items():
            found.update(cache.lookup(members, self._statuses))
        return {path: outcome for path, outcome in found.items() if not self._to_edit(outcome)}

    def note(self, task: FileTask, data: bytes) -> str:
        """Take over the content that was just read; its hash."""
        return self._cache(task).states.note(task.path, self._statuses[task.path], data)

    def remember(self, tasks: Iterable[FileTask], outcomes: Mapping[str, FileOutcome]) -> None:
        """Keep the new answers and write all caches."""
        for task in tasks:
            self._cache(task).remember(outcomes[task.path], task.rules)
        for cache in self._caches.values():
            cache.save()

    def _cache(self, task: FileTask) -> ResultCache:
        settings = self._settings.for_folder(os.path.dirname(task.path))
        place = (settings.cache_dir, task.root, settings.rule_set)
        if place not in self._caches:
            selection = f"{settings.rule_set.key} {self._options.use_scout}"
            folder = CacheFolder(settings.cache_dir)
            self._caches[place] = ResultCache(folder, task.root, selection, self._fingerprint)
        return self._caches[place]

    def _to_edit(self, outcome: FileOutcome) -> bool:
        if self._options.edit is EditMode.ADD_IGNORES:
            return bool(outcome.findings)
        if self._options.edit is EditMode.NONE:
            return False
        return any(
            finding.fix is not None
            and (self._options.unsafe_fixes or finding.fix.applicability is Applicability.SAFE)
            for finding in outcome.findings
        )
