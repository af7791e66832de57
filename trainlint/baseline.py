"""A record of the findings that an old repository has today, so that only new ones are reported.

The record counts findings per file and rule. Lines are not recorded: code that moves stays known.
Where a file has more findings of a rule than recorded, those beyond the count are reported, the
ones that stand last in the file, since code is mostly added below what exists; the count itself
is exact, the choice of lines is a guess. Paths are recorded relative to the baseline's own folder,
so that the run may start anywhere.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from trainlint.finding import Finding

_VERSION = 1


class BaselineError(Exception):
    """A baseline that cannot be read or written; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class StaleEntry:
    """A recorded count that is higher than what is found: the baseline can shrink."""

    path: str
    rule: str
    recorded: int
    found: int


@dataclass(frozen=True, slots=True)
class BaselineResult:
    """``findings`` are new, in their given order; ``known_count`` more are in the baseline."""

    findings: list[Finding]
    known_count: int
    stale: list[StaleEntry]


def write_baseline(file: Path, findings: Iterable[Finding]) -> int:
    """Record the findings in ``file`` (sorted JSON) and return how many they are.

    Raises:
        BaselineError: the file cannot be written.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for finding in findings:
        counts[_relative(finding.path, file)][finding.rule] += 1
    content = {"version": _VERSION, "findings": counts}
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    try:
        file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise BaselineError(f"cannot write baseline {file}: {_reason(error)}") from error
    return sum(rules.total() for rules in counts.values())


class Baseline:
    """The recorded counts by path, relative to the folder of ``file``, and rule name."""

    def __init__(self, file: Path, counts: Mapping[tuple[str, str], int]) -> None:
        self._file = file
        self._counts = counts

    @classmethod
    def read(cls, file: Path) -> Baseline:
        """Read what :func:`write_baseline` wrote.

        Raises:
            BaselineError: the file is missing, unreadable, or not a baseline.
        """
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise BaselineError(
                f"cannot read baseline {file}: {_reason(error)}; make one with --write-baseline"
            ) from error
        except ValueError as error:
            raise BaselineError(f"baseline {file} is not valid JSON: {error}") from error
        return cls(file, _counts(content, file))

    def apply(
        self, findings: Sequence[Finding], checked_paths: Collection[str], active: Collection[str]
    ) -> BaselineResult:
        """Separate the new findings of a whole run from the recorded ones.

        Args:
            findings: all findings of the run.
            checked_paths: the files that were checked, as in ``Finding.path``; an entry of
                another file is stale only if that file is gone.
            active: names of the rules that ran; other entries are never stale.
        """
        groups: defaultdict[tuple[str, str], list[Finding]] = defaultdict(list)
        for finding in findings:
            groups[_relative(finding.path, self._file), finding.rule].append(finding)
        known = {
            id(finding)
            for key, group in groups.items()
            for finding in sorted(group, key=_position)[: self._counts.get(key, 0)]
        }
        new = [finding for finding in findings if id(finding) not in known]
        checked = {_relative(path, self._file) for path in checked_paths}
        stale = [
            StaleEntry(path, rule, recorded, len(groups[path, rule]))
            for (path, rule), recorded in sorted(self._counts.items())
            if rule in active
            and recorded > len(groups[path, rule])
            and (path in checked or not (self._file.parent / path).exists())
        ]
        return BaselineResult(new, len(findings) - len(new), stale)


def _position(finding: Finding) -> tuple[int, int, int]:
    return finding.cell or 0, finding.line, finding.column


def _relative(path: str, file: Path) -> str:
    try:
        return PurePath(os.path.relpath(path, file.parent)).as_posix()
    except ValueError:  # on Windows, another drive
        return PurePath(path).as_posix()


def _counts(content: object, file: Path) -> dict[tuple[str, str], int]:
    if not isinstance(content, dict) or not isinstance(content.get("findings"), dict):
        raise BaselineError(f"{file} is not a baseline; make one with --write-baseline")
    if content.get("version") != _VERSION:
        raise BaselineError(
            f"baseline {file} has version {content.get('version')!r}, this trainlint reads "
            f"{_VERSION}; make it again with --write-baseline"
        )
    counts = {}
    for path, rules in content["findings"].items():
        for rule, count in rules.items() if isinstance(rules, dict) else [("", None)]:
            if not isinstance(count, int) or isinstance(count, bool) or count < 0:
                raise BaselineError(f"baseline {file} has no valid counts for {path!r}")
            counts[path, rule] = count
    return counts


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
