"""When a cached answer is used, and when it must not be."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Check
from tests.command_line import concise
from trainlint.file_check import FileChecker
from trainlint.outcome import FileOutcome, FileTask

Write = Callable[..., Path]


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The names of the files that were really checked, in this process."""
    names: list[str] = []
    check = FileChecker.check

    def noted(self: FileChecker, task: FileTask) -> FileOutcome:
        names.append(os.path.relpath(task.path, tmp_path))
        return check(self, task)

    monkeypatch.setattr(FileChecker, "check", noted)
    return names


def test_an_unchanged_file_is_not_checked_again(
    check: Check, write: Write, checked: list[str]
) -> None:
    write("a.py", "faulty()\n")
    write("b.py", "faulty(\n")
    first, second = check(), check()
    assert first == second
    assert sorted(checked) == ["a.py", "b.py"]


def test_a_changed_file_is_checked_again(check: Check, write: Write, checked: list[str]) -> None:
    write("a.py", "faulty()\n")
    write("b.py", "faulty()\n")
    check()
    checked.clear()
    write("a.py", "\nfaulty()\n")
    assert concise(check()) == ["a.py:2:1: DEM101", "b.py:1:1: DEM101"]
    assert checked == ["a.py"]


def test_a_file_of_the_same_size_and_time_that_was_just_written_is_not_trusted(
    check: Check, write: Write
) -> None:
    path = write("a.py", "faulty()\n")
    check()
    times = path.stat()
    write("a.py", "result()\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert check().code == 0


def test_a_touched_file_is_not_checked_again(
    check: Check, write: Write, checked: list[str]
) -> None:
    path = write("a.py", "faulty()\n")
    check()
    os.utime(path, (1_000_000_000, 1_000_000_000))
    assert concise(check()) == ["a.py:1:1: DEM101"]
    assert len(checked) == 1


def test_a_cached_answer_is_complete(check: Check, write: Write) -> None:
    write("a.py", "faulty()\ndoubtful(\n  1)\n")
    for output_format in ("json", "full"):
        arguments = ("--select", "ALL", "--output-format", output_format)
        assert check(*arguments) == check(*arguments) == check(*arguments, "--no-cache")


def test_another_selection_is_another_answer(check: Check, write: Write) -> None:
    write("a.py", "faulty()\nslow()\n")
    assert len(concise(check())) == 1
    assert len(concise(check("--select", "ALL"))) == 2
    assert len(concise(check("--per-file-ignores", "a.py:DEM101"))) == 0
    assert len(concise(check())) == 1


def test_a_change_of_a_consulted_file_counts(
    check: Check, write: Write, checked: list[str]
) -> None:
    write("a.py", "neighbour()\n")
    write("b.py", "faulty()\n")
    arguments = ("--select", "ALL")
    assert len(concise(check(*arguments))) == 1
    write("neighbour.py", "# trouble\n")
    checked.clear()
    assert len(concise(check(*arguments))) == 2
    assert checked == ["a.py"]
    (write("neighbour.py")).unlink()
    assert len(concise(check(*arguments))) == 1


@pytest.mark.parametrize("before", [None, "treasures = 1\n", "# treasure\n"])
@pytest.mark.parametrize("after", [None, "treasures = 2\n", "# the treasure\n"])
def test_an_answer_that_searched_the_project_holds_while_the_search_finds_nothing_new(
    check: Check, write: Write, checked: list[str], before: str | None, after: str | None
) -> None:
    write("setup.py")
    write("a.py", "search()\n")
    write("b.py", "faulty()\n")
    arguments = ("--select", "ALL", "a.py", "b.py")
    if before is not None:
        write("deep/down.py", before)
    first = concise(check(*arguments))
    assert concise(check(*arguments)) == first
    checked.clear()
    if after is not None:
        write("deep/down.py", after)
    elif before is not None:
        write("deep/down.py").unlink()
    found = concise(check(*arguments))
    assert checked == (["a.py"] if "# " in f"{before}{after}" else [])
    assert found == concise(check(*arguments, "--no-cache"))


def test_files_of_an_earlier_run_are_remembered_by_a_run_on_others(
    check: Check, write: Write, checked: list[str]
) -> None:
    write("a.py", "faulty()\n")
    write("b.py", "faulty()\n")
    check("a.py")
    check("b.py")
    checked.clear()
    check()
    assert checked == []


def test_an_answer_about_changed_neighbours_is_not_revived_by_a_run_on_others(
    check: Check, write: Write
) -> None:
    write("a.py", "neighbour()\n")
    write("b.py", "faulty()\n")
    check("--select", "ALL", "a.py")
    write("neighbour.py", "# trouble\n")
    check("--select", "ALL", "b.py", "neighbour.py")
    assert concise(check("--select", "ALL", "a.py")) == ["a.py:1:1: DEM501"]


def test_no_cache_leaves_nothing_behind(check: Check, write: Write, tmp_path: Path) -> None:
    write("a.py", "faulty()\n")
    check("--no-cache")
    assert os.listdir(tmp_path) == ["a.py"]


def test_the_cache_keeps_itself_out_of_the_repository(
    check: Check, write: Write, tmp_path: Path
) -> None:
    write("a.py", "faulty()\n")
    check("--cache-dir", "somewhere/cache")
    assert "*" in (tmp_path / "somewhere/cache/.gitignore").read_text().splitlines()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"fingerprint": 1}', b"[" * 100_000],
)
def test_a_broken_cache_is_ignored(
    check: Check, write: Write, tmp_path: Path, content: bytes
) -> None:
    write("a.py", "faulty()\n")
    expected = check()
    for path in (tmp_path / ".trainlint_cache").rglob("*.json"):
        path.write_bytes(content)
    assert check() == expected


def test_a_cache_with_wrong_values_is_ignored(check: Check, write: Write, tmp_path: Path) -> None:
    write("a.py", "faulty()\n")
    expected = check()
    documents = list((tmp_path / ".trainlint_cache").rglob("*.json"))
    for path in documents:
        document = json.loads(path.read_text())
        for key in set(document) - {"fingerprint", "code"}:
            path.write_text(json.dumps({**document, key: [[7]]}))
            assert check() == expected


def test_a_cache_folder_that_is_a_file_does_no_harm(
    check: Check, write: Write, tmp_path: Path
) -> None:
    write("a.py", "faulty()\n")
    write(".trainlint_cache", "not a folder")
    assert check().code == 1


def test_a_moved_project_keeps_its_answers(
    check: Check, write: Write, checked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("old/trainlint.toml")
    write("old/a.py", "faulty()\n")
    monkeypatch.chdir(tmp_path / "old")
    check()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").rename(tmp_path / "new")
    monkeypatch.chdir(tmp_path / "new")
    assert concise(check()) == ["a.py:1:1: DEM101"]
    assert len(checked) == 1
