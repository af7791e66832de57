"""``--fix``, ``--unsafe-fixes``, ``--diff``, ``--add-ignore``: what happens to the files."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Check

Write = Callable[..., Path]


def test_fix_writes_safe_repairs_and_reports_the_rest(check: Check, write: Write) -> None:
    path = write("a.py", "faulty()  # keep me\ndoubtful()\n")
    ended = check("--fix")
    assert path.read_text() == "right()  # keep me\ndoubtful()\n"
    assert ended.code == 1
    assert "a.py:2:1: DEM102" in ended.stdout
    assert "Fixed 1 finding" in ended.stdout


def test_fix_with_nothing_left_is_0(check: Check, write: Write) -> None:
    path = write("a.py", "faulty()\ndoubtful()\n")
    assert check("--fix", "--unsafe-fixes").code == 0
    assert path.read_text() == "right()\nbetter()\n"


def test_fixing_twice_changes_nothing(check: Check, write: Write) -> None:
    path = write("a.py", "faulty(faulty(faulty()))\n")
    check("--fix")
    once = path.read_bytes()
    check("--fix")
    assert path.read_bytes() == once == b"right(right(right()))\n"


def test_fix_after_a_cached_answer(check: Check, write: Write) -> None:
    path = write("a.py", "faulty()\n")
    check()
    check("--fix")
    assert path.read_text() == "right()\n"


def test_unsafe_fixes_alone_writes_nothing(check: Check, write: Write) -> None:
    path = write("a.py", "doubtful()\n")
    assert check("--unsafe-fixes").code == 1
    assert path.read_text() == "doubtful()\n"


def test_diff_shows_repairs_and_writes_nothing(check: Check, write: Write) -> None:
    path = write("a.py", "faulty()\n")
    ended = check("--diff")
    assert ended.code == 1
    assert ended.stdout == "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-faulty()\n+right()\n"
    assert "Would fix 1 finding." in ended.stderr
    assert path.read_text() == "faulty()\n"


def test_diff_without_repairs_is_0(check: Check, write: Write) -> None:
    write("a.py", "doubtful()\n")
    ended = check("--diff")
    assert (ended.code, ended.stdout) == (0, "")


def test_diff_of_a_file_without_a_last_line_end(check: Check, write: Write) -> None:
    write("a.py", "faulty()")
    assert "-faulty()\n\\ No newline at end of file\n+right()\n\\" in check("--diff").stdout


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xef\xbb\xbffaulty()\n", b"\xef\xbb\xbfright()\n"),
        (b"faulty()\r\nx = 1\r\n", b"right()\r\nx = 1\r\n"),
        (
            b"# -*- coding: latin-1 -*-\nx = '\xe9'\nfaulty()\n",
            b"# -*- coding: latin-1 -*-\nx = '\xe9'\nright()\n",
        ),
        (b"x = 1\n\x0c\nfaulty()\n\x0c\n", b"x = 1\n\x0c\nright()\n\x0c\n"),
        (b"faulty()", b"right()"),
    ],
    ids=["byte order mark", "CRLF", "latin-1", "form feeds", "no last line end"],
)
def test_fix_leaves_the_rest_of_the_file_as_it_is(
    check: Check, write: Write, before: bytes, after: bytes
) -> None:
    path = write("a.py", before)
    check("--fix")
    assert path.read_bytes() == after


@pytest.mark.parametrize(
    "content",
    [b"x = 1\n\x0cfaulty()\n", b"def f():\n\x0c    faulty()\n", b"x = 1\rfaulty()\r"],
    ids=["form feed before code", "form feed before indentation", "bare carriage returns"],
)
def test_no_fix_is_promised_that_cannot_be_made(check: Check, write: Write, content: bytes) -> None:
    path = write("a.py", content)
    ended = check("--fix")
    assert path.read_bytes() == content
    assert "DEM101" in ended.stdout
    assert "fixable" not in check().stdout


@pytest.mark.skipif(sys.platform == "win32", reason="no such modes")
def test_fix_keeps_the_mode(check: Check, write: Write) -> None:
    path = write("a.py", "faulty()\n")
    path.chmod(0o750)
    check("--fix")
    assert stat.S_IMODE(path.stat().st_mode) == 0o750


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_fix_writes_through_a_link(check: Check, write: Write, tmp_path: Path) -> None:
    target = write("elsewhere/a.txt", "faulty()\n")
    (tmp_path / "a.py").symlink_to(target)
    check("--fix")
    assert (tmp_path / "a.py").is_symlink()
    assert target.read_text() == "right()\n"


def test_fix_leaves_no_other_file_behind(check: Check, write: Write, tmp_path: Path) -> None:
    write("src/a.py", "faulty()\n")
    check("--fix", "--no-cache")
    assert os.listdir(tmp_path) == ["src"]
    assert os.listdir(tmp_path / "src") == ["a.py"]


def test_a_suppressed_finding_is_not_repaired(check: Check, write: Write) -> None:
    path = write("a.py", "faulty()  # trainlint: ignore[demo-faulty]\n")
    check("--fix")
    assert path.read_text() == "faulty()  # trainlint: ignore[demo-faulty]\n"


def test_fix_removes_a_suppression_that_hides_nothing(check: Check, write: Write) -> None:
    path = write("a.py", "right()  # trainlint: ignore[demo-faulty]\n")
    assert check("--fix").code == 0
    assert path.read_text() == "right()\n"


def test_add_ignore_hides_what_there_is(check: Check, write: Write) -> None:
    path = write("a.py", "faulty()\n")
    ended = check("--add-ignore")
    assert ended.code == 0
    assert "Added 1 ignore comment." in ended.stderr
    assert path.read_text() == "faulty()  # trainlint: ignore[demo-faulty]\n"
    assert check().code == 0


def test_fix_from_the_configuration(check: Check, write: Write) -> None:
    write("trainlint.toml", "fix = true\n")
    path = write("a.py", "faulty()\n")
    check("--no-fix")
    assert path.read_text() == "faulty()\n"
    check()
    assert path.read_text() == "right()\n"
