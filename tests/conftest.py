"""Shared by all tests: how a program is checked from its text."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from trainlint.analysis import Project, SourceFile
from trainlint.engine import as_finding, check_file
from trainlint.finding import Finding
from trainlint.registry import all_rules

# A machine that is busy with something else is no fault of the code.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

CheckProject = Callable[[Path, Sequence[str]], dict[Path, list[Finding]]]


def check_folder(root: Path, rule_names: Sequence[str]) -> dict[Path, list[Finding]]:
    """Findings of the named rules (all rules if none is named) in every file below ``root``."""
    rules = [rule for rule in all_rules() if not rule_names or rule.name in rule_names]
    found: dict[Path, list[Finding]] = {}
    for path in sorted(root.rglob("*.py")):
        source = SourceFile.from_bytes(path, path.read_bytes())
        result = check_file(source, Project(root), rules)
        found[path] = [as_finding(report, source) for report in result.reports]
    return found


@pytest.fixture
def check_project() -> CheckProject:
    """The checking function, for tests that write a project of their own."""
    return check_folder


Unprivileged = Callable[[], contextlib.AbstractContextManager[None]]
_NOBODY = 65534


@pytest.fixture
def unprivileged(tmp_path: Path) -> Unprivileged:
    """What runs inside is bound by the modes of the files below ``tmp_path``, as root is not.

    All that it imports must be imported before: root's Python may be closed to others.
    """
    if not hasattr(os, "geteuid"):
        pytest.skip("no such modes")

    @contextlib.contextmanager
    def as_nobody() -> Iterator[None]:
        if os.geteuid() != 0:
            yield
            return
        for path in (tmp_path, *tmp_path.rglob("*")):
            os.chown(path, _NOBODY, _NOBODY)
        for folder in tmp_path.parents:
            if folder == Path(tempfile.gettempdir()):
                break
            folder.chmod(folder.stat().st_mode | 0o011)
        os.seteuid(_NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)

    return as_nobody
