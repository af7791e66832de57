"""The fingerprint of our own code: contents decide, and are read only where times say so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainlint.cache import catalogue_file
from trainlint.cache.folder import CacheFolder

_LONG_AGO = 1_000_000_000


@pytest.fixture
def rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "rule.py"
    monkeypatch.setattr(catalogue_file, "_python_files", lambda _: [str(path)])
    return path


def write(path: Path, text: str, time: int = _LONG_AGO) -> None:
    path.write_text(text)
    os.utime(path, (time, time))


def code(tmp_path: Path) -> str:
    return catalogue_file._own_code(CacheFolder(str(tmp_path / "cache")))


def test_other_contents_are_other_code(rule: Path, tmp_path: Path) -> None:
    write(rule, "x = 1\n")
    before = code(tmp_path)
    write(rule, "x = 2\n", _LONG_AGO + 1)
    assert code(tmp_path) != before


def test_the_same_contents_installed_again_are_the_same_code(rule: Path, tmp_path: Path) -> None:
    write(rule, "x = 1\n")
    before = code(tmp_path)
    write(rule, "x = 1\n", _LONG_AGO + 1)
    assert code(tmp_path) == before


def test_unchanged_times_are_believed(
    rule: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(rule, "x = 1\n")
    before = code(tmp_path)
    monkeypatch.setattr(catalogue_file, "_contents", lambda _: pytest.fail("read again"))
    assert code(tmp_path) == before


def test_code_that_was_just_written_is_read_again(rule: Path, tmp_path: Path) -> None:
    rule.write_text("x = 1\n")
    times = rule.stat()
    before = code(tmp_path)
    rule.write_text("x = 2\n")
    os.utime(rule, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert code(tmp_path) != before
