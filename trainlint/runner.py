"""Runs a check over many files: cache, sieve, then rules, in this process or in several."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainlint.cache import ProjectCaches
from trainlint.config import SettingsResolver
from trainlint.discovery import FileStat
from trainlint.garbage import keeping_all
from trainlint.outcome import CheckOptions, FileOutcome, FileTask
from trainlint.project_root import ProjectRoots

_POOL_PAYS_BYTES = 250_000
"""Below this much source to check, starting processes takes longer than they would save."""


@dataclass(frozen=True, slots=True)
class Run:
    """What to check and how.

    ``jobs`` is the number of worker processes, if any are started. ``fingerprint`` is of the
    installed rules; without one nothing is read from the cache or written to it. ``advance`` is
    told how many more files are done.
    """

    files: Mapping[str, FileStat]
    settings: SettingsResolver
    options: CheckOptions
    jobs: int
    fingerprint: str | None
    advance: Callable[[int], None]


def check_files(run: Run) -> list[FileOutcome]:
    """The outcome for every file, sorted by path.

    Raises:
        ConfigError: a configuration file cannot be used.
    """
    roots = ProjectRoots()
    tasks = [task_for(path, status.size, run.settings, roots) for path, status in run.files.items()]
    # By project, within it the large files first, so that none of them comes last.
    tasks.sort(key=lambda task: (task.root, -task.size, task.path))
    if run.fingerprint is None:
        outcomes = {outcome.path: outcome for outcome in _check(run, tasks, None)}
    else:
        outcomes = _check_with_cache(run, tasks, run.fingerprint)
    return [outcomes[path] for path in sorted(outcomes)]


def task_for(path: str, size: int, settings: SettingsResolver, roots: ProjectRoots) -> FileTask:
    """What is to be done for one file.

    Raises:
        ConfigError: its configuration file cannot be used.
    """
    rules = settings.for_folder(os.path.dirname(path)).rule_set_of(path)
    return FileTask(path, roots.of_file(path), size, rules)


def _check_with_cache(
    run: Run, tasks: Sequence[FileTask], fingerprint: str
) -> dict[str, FileOutcome]:
    caches = ProjectCaches(fingerprint, run.options, run.settings, run.files)
    outcomes = caches.lookup(tasks)
    run.advance(len(outcomes))
    unanswered = [task for task in tasks if task.path not in outcomes]
    outcomes.update((outcome.path, outcome) for outcome in _check(run, unanswered, caches))
    caches.remember(unanswered, outcomes)
    return outcomes


def _check(
    run: Run, tasks: Sequence[FileTask], caches: ProjectCaches | None
) -> Iterator[FileOutcome]:
    settled: list[FileOutcome] = []
    for outcome in _check_suspects(run, _sieve(run, tasks, caches, settled)):
        run.advance(1)
        yield outcome
    yield from settled


def _sieve(
    run: Run, tasks: Sequence[FileTask], caches: ProjectCaches | None, settled: list[FileOutcome]
) -> Iterator[FileTask]:
    """The files on which a rule could fire; the outcomes of the others go to ``settled``."""
    if not tasks:
        return
    from trainlint.sieve import Sieve

    sieve = Sieve()
    for task in tasks:
        try:
            with open(task.path, "rb") as file:
                data = file.read()
        except OSError as error:
            settled.append(FileOutcome(task.path, problem=f"cannot read: {error.strerror}"))
            run.advance(1)
            continue
        digest = caches.note(task, data) if caches else None
        suspect = sieve.suspected(task, data) if run.options.use_scout else task
        if suspect is not None:
            yield suspect
        else:
            settled.append(FileOutcome(task.path, content_hash=digest))
            run.advance(1)


def _check_suspects(run: Run, suspects: Iterator[FileTask]) -> Iterator[FileOutcome]:
    """Check a few files here, and more in several processes, to which they go as they are found."""
    few: list[FileTask] = []
    for task in suspects:
        few.append(task)
        if sum(each.size for each in few) >= _POOL_PAYS_BYTES:
            break
    if not few:
        return
    from trainlint.file_check import FileChecker

    with keeping_all():
        if sum(each.size for each in few) < _POOL_PAYS_BYTES:
            yield from map(FileChecker(run.options).check, few)
            return
        from trainlint.workers import WorkerPool

        yield from WorkerPool(run.options, run.jobs).run(itertools.chain(few, suspects))
