"""The answers for the files of one project, and whether they still hold."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trainlint.cache.encoding import decode, encode
from trainlint.cache.file_states import FileStates, State, content_hash
from trainlint.cache.folder import CacheFolder
from trainlint.config.selection import RuleSet
from trainlint.discovery import FileStat
from trainlint.finding import Finding
from trainlint.outcome import FileOutcome, FileTask
from trainlint.search import Search, searched_files


@dataclass(frozen=True, slots=True)
class _Answer:
    """``consulted`` holds the checked file itself too; ``findings`` are encoded."""

    rules: str
    consulted: frozenset[str]
    searches: frozenset[Search]
    problem: str | None
    findings: list[list[Any]]


class ResultCache:
    """What is remembered of one project under one ``selection`` of rules and options.

    Answers of other code, by its ``fingerprint``, are not used, and are replaced. Everything that
    is stored together holds together: an answer is kept only while all that it was made from is
    as the stored file states say.
    """

    def __init__(self, folder: CacheFolder, root: str, selection: str, fingerprint: str) -> None:
        self._folder = folder
        self._root = root
        self._fingerprint = fingerprint
        self._name = _file_name(os.path.relpath(root, folder.path), selection)
        self._answers: dict[str, _Answer] = {}
        self._stored_hashes: dict[str, str | None] = {}
        self._was_searched = False
        self.states = FileStates(self._load())
        self._is_new: set[str] = set()

    def lookup(
        self, tasks: Sequence[FileTask], statuses: Mapping[str, FileStat]
    ) -> dict[str, FileOutcome]:
        """The answers that still hold, by path."""
        found = {
            task.path: answer
            for task in tasks
            if (answer := self._answers.get(task.path)) is not None
            and answer.rules == task.rules.key
        }
        holding = self._holding(found, statuses)
        return {path: _outcome(path, found[path]) for path in holding}

    def remember(self, outcome: FileOutcome, rules: RuleSet) -> None:
        """Keep the answer for a file, unless the file changed while it was checked."""
        self._answers.pop(outcome.path, None)
        current = self.states.current(outcome.path)
        if outcome.is_fault or current is None or current != outcome.content_hash:
            return
        self._is_new.add(outcome.path)
        self._answers[outcome.path] = _Answer(
            rules.key,
            outcome.consulted | {outcome.path},
            outcome.searches,
            outcome.problem,
            [encode(finding) for finding in outcome.findings],
        )

    def save(self) -> None:
        """Write the cache if there is anything new to remember."""
        if not self._is_new and not self.states.refreshed:
            return
        old = {path: answer for path, answer in self._answers.items() if path not in self._is_new}
        keep = {path: self._answers[path] for path in self._holding(old, {})}
        keep.update((path, self._answers[path]) for path in self._settled_new())
        self._folder.write(self._name, self._document(keep))

    def _holding(
        self, answers: Mapping[str, _Answer], statuses: Mapping[str, FileStat]
    ) -> list[str]:
        """The paths of those answers for which nothing has changed."""
        consulted: set[str] = set().union(*(answer.consulted for answer in answers.values()))
        changed = {
            path
            for path in consulted
            if self.states.current(path, statuses.get(path)) != self._stored_hashes.get(path)
        }
        searches: set[Search] = set().union(*(answer.searches for answer in answers.values()))
        outdated = self._outdated(searches) if searches else set()
        return [
            path
            for path, answer in answers.items()
            if changed.isdisjoint(answer.consulted) and outdated.isdisjoint(answer.searches)
        ]

    def _outdated(self, searches: set[Search]) -> set[Search]:
        """The searches that now find a file which is new, or has changed.

        Whether they found it before does not matter: a file that was found was consulted.
        """
        searched = self._searched_files
        if bool(searched) != self._was_searched:
            return searches
        found: set[Search] = set()
        for path, status in searched.items():
            if self.states.current(path, status) != self._stored_hashes.get(path):
                with contextlib.suppress(OSError), open(path, "rb") as file:
                    data = file.read()
                    found.update(search for search in searches - found if search.finds(data))
        return found

    def _settled_new(self) -> list[str]:
        """The new answers that no change during the run makes doubtful."""
        new = {path: self._answers[path] for path in self._is_new}
        consulted: set[str] = set().union(*(answer.consulted for answer in new.values()))
        doubtful = {path for path in consulted if self.states.changed_meanwhile(path)}
        project_doubtful = any(answer.searches for answer in new.values()) and any(
            self.states.changed_meanwhile(path) for path in self._searched_files
        )
        return [
            path
            for path, answer in new.items()
            if doubtful.isdisjoint(answer.consulted) and not (answer.searches and project_doubtful)
        ]

    @cached_property
    def _searched_files(self) -> dict[str, FileStat]:
        return searched_files(self._root)

    def _document(self, answers: Mapping[str, _Answer]) -> dict[str, Any]:
        searches = list(set().union(*(answer.searches for answer in answers.values())))
        searched = list(self._searched_files) if searches else []
        consulted: set[str] = set().union(*(answer.consulted for answer in answers.values()))
        paths = sorted({*consulted, *searched})
        index = {path: number for number, path in enumerate(paths)}
        number_of = {search: number for number, search in enumerate(searches)}
        return {
            "fingerprint": self._fingerprint,
            "searched": bool(searched),
            "searches": [[search.text, *search.one_of] for search in searches],
            "paths": [self._relative(path) for path in paths],
            "states": [self.states.to_remember(path) for path in paths],
            "answers": [
                [
                    index[path],
                    answer.rules,
                    sorted(index[other] for other in answer.consulted),
                    sorted(number_of[search] for search in answer.searches),
                    answer.problem,
                    answer.findings,
                ]
                for path, answer in answers.items()
            ],
        }

    def _load(self) -> dict[str, State]:
        """Take over what is stored; nothing if it is foreign, broken, or of other code."""
        document = self._folder.read(self._name)
        if document is None or document.get("fingerprint") != self._fingerprint:
            return {}
        try:
            return self._take_over(document)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            self._answers.clear()
            self._stored_hashes.clear()
            return {}

    def _take_over(self, document: Mapping[str, Any]) -> dict[str, State]:
        paths = [os.path.join(self._root, path) for path in document["paths"]]
        known: dict[str, State] = {}
        for path, state in zip(paths, document["states"], strict=True):
            self._stored_hashes[path] = None if state is None else state[2]
            if state is not None:
                size, modified_ns, digest = state
                known[path] = (size, modified_ns, digest)
        self._was_searched = document["searched"]
        searches = [Search(text, tuple(one_of)) for text, *one_of in document["searches"]]
        for number, rules, consulted, asked, problem, findings in document["answers"]:
            path = paths[number]
            others = frozenset([paths[other] for other in consulted])
            _decoded(path, findings)
            searched = frozenset([searches[each] for each in asked])
            self._answers[path] = _Answer(rules, others, searched, problem, findings)
        return known

    def _relative(self, path: str) -> str:
        prefix = self._root + os.sep
        return path.removeprefix(prefix)


def _file_name(root: str, selection: str) -> str:
    """Relative to the cache, so that a checkout can be moved, or restored on another machine."""
    return content_hash(f"{root}\n{selection}".encode("utf-8", "surrogateescape"))[:20]


def _outcome(path: str, answer: _Answer) -> FileOutcome:
    return FileOutcome(path, _decoded(path, answer.findings), answer.problem)


def _decoded(path: str, findings: Iterable[list[Any]]) -> tuple[Finding, ...]:
    return tuple(decode(path, values) for values in findings)
