"""Files that are no ordinary source: one line each at most, and the others are still checked."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.conftest import Check
from tests.command_line import concise, run_trainlint
from tests.conftest import Unprivileged
from trainlint.file_check import FileChecker
from trainlint.outcome import FileOutcome, FileTask

Write = Callable[..., Path]

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="POSIX files")


@pytest.fixture
def problem(check: Check, write: Write) -> Callable[[str | bytes], str]:
    """The line about a file with this content; empty if it can be checked."""

    def find(content: str | bytes) -> str:
        write("odd.py", content)
        write("plain.py", "faulty()\n")
        ended = check("--no-scout")
        assert "plain.py:1:1: DEM101" in concise(ended)
        lines = [line for line in ended.stdout.splitlines() if line.startswith("error: odd.py: ")]
        assert ended.code == (2 if lines else 1)
        assert len(lines) <= 1
        return lines[0].removeprefix("error: odd.py: ") if lines else ""

    return find


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"\xef\xbb\xbfx = 1\n",
        b"# -*- coding: latin-1 -*-\nx = '\xe9'\n",
        b"x = 1\r\nif x:\r\n    x = 2\r\n",
        b"x = 1\rif x:\r    x = 2\r",
        b"\x0cx = 1\n\x0c\n",
        b"x = 1",
        b"def f(): pass\n" * 20_000,
        b"x = '" + b"y" * 5_000_000 + b"'\n",
    ],
    ids=[
        "empty", "one line end", "byte order mark", "latin-1", "CRLF", "CR", "form feeds",
        "no last line end", "many lines", "one line of 5 MB",
    ],
)  # fmt: skip
def test_what_python_can_read_can_be_checked(
    problem: Callable[[str | bytes], str], content: bytes
) -> None:
    assert problem(content) == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("print 'python 2'\n", "cannot parse at line 1: "),
        ("x = " + "(" * 1000 + ")" * 1000 + "\n", "cannot parse at line 1: too many nested"),
        ("x = " + "-" * 100_000 + "1\n", "cannot parse"),
        ("x = " + "a." * 100_000 + "b\n", "cannot parse"),
        (b"x = '\xe9'\n", "cannot decode: "),
        (b"# coding: klingon\n", "cannot decode: "),
        (b"x = 1\0\n", "cannot parse"),
        ("if x:\n\ty = 1\n        z = 2\n", "cannot parse at line 3: "),
        ("x = '\n", "cannot parse at line 1: "),
        ("\ud800".encode("utf-8", "surrogatepass"), "cannot decode: "),
        ("x = [" + "1, " * 2_000_000 + "]\n", "too large to check: 2,000,002 names"),
    ],
    ids=[
        "Python 2", "1,000 parentheses", "100,000 signs", "100,000 attributes", "not UTF-8",
        "unknown encoding", "zero byte", "tabs", "open string", "surrogate", "2,000,000 numbers",
    ],
)  # fmt: skip
def test_what_python_cannot_read_is_one_line(
    problem: Callable[[str | bytes], str], content: str | bytes, message: str
) -> None:
    assert problem(content).startswith(message)


def test_a_file_that_is_deleted_before_it_is_checked(
    check: Check, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("odd.py", "faulty()\n")
    write("plain.py", "faulty()\n")
    check_one = FileChecker.check

    def delete_first(self: FileChecker, task: FileTask) -> FileOutcome:
        path.unlink(missing_ok=True)
        return check_one(self, task)

    monkeypatch.setattr(FileChecker, "check", delete_first)
    ended = check()
    assert ended.code == 2
    assert "error: odd.py: cannot read: No such file or directory" in ended.stdout
    assert concise(ended)[0] == "plain.py:1:1: DEM101"


def test_a_file_that_changes_while_it_is_repaired_is_left_alone(
    check: Check, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("a.py", "faulty()\n")
    check_content = FileChecker.check_content

    def edit_meanwhile(self: FileChecker, task: FileTask, data: bytes) -> tuple[FileOutcome, bytes]:
        path.write_text("edited = faulty()\n")
        return check_content(self, task, data)

    monkeypatch.setattr(FileChecker, "check_content", edit_meanwhile)
    ended = check("--fix")
    assert ended.code == 2
    assert "error: a.py: changed while it was repaired; run again" in ended.stdout
    assert path.read_text() == "edited = faulty()\n"


@posix_only
def test_an_unreadable_file(check: Check, write: Write, unprivileged: Unprivileged) -> None:
    write("odd.py", "faulty()\n").chmod(0)
    write("plain.py", "faulty()\n")
    check("--no-cache")
    with unprivileged():
        ended = check()
    assert ended.code == 2
    assert "error: odd.py: cannot read: Permission denied" in ended.stdout
    assert "plain.py:1:1: DEM101" in concise(ended)


@posix_only
def test_a_read_only_folder_does_not_break_a_run(
    check: Check, write: Write, tmp_path: Path, unprivileged: Unprivileged
) -> None:
    path = write("a.py", "faulty()\n")
    check("--no-cache", "--diff")
    tmp_path.chmod(0o500)
    try:
        with unprivileged():
            assert check().code == 1
            ended = check("--fix")
    finally:
        tmp_path.chmod(0o700)
    assert ended.code == 2
    assert "error: a.py: cannot write: Permission denied" in ended.stdout
    assert concise(ended)[0] == "a.py:1:1: DEM101"
    assert path.read_text() == "faulty()\n"


@posix_only
def test_a_name_that_is_not_unicode(tmp_path: Path) -> None:
    try:
        (tmp_path / os.fsdecode(b"odd\xff.py")).write_text("faulty()\n")
    except OSError:
        pytest.skip("this file system wants Unicode names")
    for _ in ("cold", "warm"):
        ended = run_trainlint("check", "--output-format", "concise", cwd=tmp_path)
        assert ended.code == 1
        assert ended.stdout.startswith("odd\\udcff.py:1:1: DEM101")


def test_a_notebook(check: Check, write: Write) -> None:
    cell = (
        '{"cell_type": "code", "metadata": {}, "outputs": [], "source": ["x = 1\\n", "faulty()"]}'
    )
    write("a.ipynb", f'{{"cells": [{cell}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}')
    ended = check()
    assert ended.code == 1
    assert "a.ipynb:cell 1:2:1: DEM101" in ended.stdout
    check("--fix")
    assert check().code == 0


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"cells": 3}', "\0"])
def test_a_broken_notebook_is_one_line(check: Check, write: Write, content: str) -> None:
    write("a.ipynb", content)
    write("plain.py", "faulty()\n")
    ended = check()
    assert ended.code in (1, 2)
    assert "plain.py:1:1: DEM101" in concise(ended)
    assert sum("a.ipynb" in line for line in ended.stdout.splitlines()) == (ended.code == 2)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    max_examples=40,
)
@given(
    content=st.binary(max_size=60)
    | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace"))
)
def test_any_bytes_are_checked_or_refused_in_one_line(
    problem: Callable[[str | bytes], str], content: bytes
) -> None:
    problem(content)
