"""Many files: worker processes, their deaths, and where a project starts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import THIRD_PARTY
from trainlint import workers
from trainlint.config import RuleSet
from trainlint.outcome import CheckOptions, FileOutcome, FileTask
from trainlint.project_root import ProjectRoots
from trainlint.registry import all_rules
from trainlint.workers import WorkerPool

RULES = RuleSet(("DEM101", "DEM401"), frozenset())


@pytest.fixture(autouse=True)
def _demo_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The demo rules are installed in this process."""
    monkeypatch.syspath_prepend(str(THIRD_PARTY))
    all_rules.cache_clear()
    yield
    all_rules.cache_clear()


def run(folder: Path, contents: list[str], count: int) -> dict[str, FileOutcome]:
    tasks = []
    for number, content in enumerate(contents):
        path = folder / f"f{number:02}.py"
        path.write_text(content)
        tasks.append(FileTask(str(path), str(folder), len(content), RULES))
    pool = WorkerPool(CheckOptions(str(folder)), count)
    return {Path(outcome.path).name: outcome for outcome in pool.run(tasks)}


@pytest.mark.parametrize("count", [1, 3])
def test_every_file_has_one_outcome(tmp_path: Path, count: int) -> None:
    outcomes = run(tmp_path, ["faulty()\n" * number for number in range(20)], count)
    assert [len(outcomes[f"f{number:02}.py"].findings) for number in range(20)] == list(range(20))


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_a_crash_is_blamed_on_its_file_only(tmp_path: Path) -> None:
    contents = ["crash()\n" if number in (0, 4, 9) else "faulty()\n" for number in range(10)]
    outcomes = run(tmp_path, contents, 2)
    assert len(outcomes) == 10
    crashed = sorted(name for name, outcome in outcomes.items() if outcome.problem)
    assert crashed == ["f00.py", "f04.py", "f09.py"]
    assert all(outcomes[name].is_fault for name in crashed)


def test_a_worker_that_has_grown_too_large_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    start = WorkerPool._start

    def counted(self: WorkerPool) -> workers._Worker:
        started.append(1)
        return start(self)

    monkeypatch.setattr(WorkerPool, "_start", counted)
    monkeypatch.setattr(workers, "_MEMORY_LIMIT_KIB", 1)
    monkeypatch.setattr(workers, "_BATCH_BYTES", 1)
    outcomes = run(tmp_path, ["faulty()\n"] * 4, 1)
    assert len(outcomes) == 4
    assert len(started) == (1 if sys.platform == "win32" else 4)


def test_leaving_early_stops_the_workers(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("faulty()\n")
    task = FileTask(str(path), str(tmp_path), 9, RULES)
    pool = WorkerPool(CheckOptions(str(tmp_path)), 2)
    outcomes = pool.run([task] * 50)
    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]
    assert pool._workers == []


@pytest.mark.parametrize(
    "marker", ["trainlint.toml", "pyproject.toml", ".git", "setup.py", "setup.cfg"]
)
def test_a_project_starts_at_the_nearest_marker(tmp_path: Path, marker: str) -> None:
    (tmp_path / "outer/inner/pkg").mkdir(parents=True)
    (tmp_path / "outer/pyproject.toml").touch()
    (tmp_path / "outer/inner" / marker).touch()
    path = tmp_path / "outer/inner/pkg/a.py"
    assert ProjectRoots().of_file(str(path)) == str(tmp_path / "outer/inner")


def test_without_a_marker_it_starts_above_the_topmost_package(tmp_path: Path) -> None:
    (tmp_path / "scripts/pkg/sub").mkdir(parents=True)
    (tmp_path / "scripts/pkg/__init__.py").touch()
    (tmp_path / "scripts/pkg/sub/__init__.py").touch()
    roots = ProjectRoots()
    assert roots.of_file(str(tmp_path / "scripts/pkg/sub/a.py")) == str(tmp_path / "scripts")
    assert roots.of_file(str(tmp_path / "scripts/a.py")) == str(tmp_path / "scripts")
