"""``trainlint check -``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Check

Write = Callable[..., Path]


def test_findings_carry_the_given_name(check: Check) -> None:
    ended = check("-", "--stdin-filename", "src/a.py", stdin=b"faulty()\n")
    assert ended.code == 1
    assert ended.stdout.startswith("src/a.py:1:1: DEM101")


def test_without_a_name(check: Check) -> None:
    assert check("-", stdin=b"faulty()\n").stdout.startswith("-:1:1: DEM101")


def test_full_output_shows_the_line(check: Check) -> None:
    ended = check("-", "--output-format", "full", stdin=b"faulty()\n")
    assert "1 | faulty()" in ended.stdout


def test_fix_prints_the_repaired_source_and_nothing_else(check: Check) -> None:
    ended = check("-", "--fix", stdin=b"faulty()\ndoubtful()\n")
    assert ended.stdout == "right()\ndoubtful()\n"
    assert "DEM102" in ended.stderr
    assert ended.code == 1


def test_fix_prints_source_that_needs_no_repair(check: Check) -> None:
    ended = check("-", "--fix", stdin=b"print(1)\n")
    assert (ended.code, ended.stdout) == (0, "print(1)\n")


def test_fix_prints_source_that_cannot_be_parsed(check: Check) -> None:
    ended = check("-", "--fix", stdin=b"faulty(\n")
    assert (ended.code, ended.stdout) == (2, "faulty(\n")


def test_diff(check: Check) -> None:
    ended = check("-", "--diff", "--stdin-filename", "a.py", stdin=b"faulty()\n")
    assert ended.stdout.startswith("--- a.py\n+++ a.py\n")
    assert ended.code == 1


def test_the_settings_of_the_named_file_hold(check: Check, write: Write) -> None:
    write("src/trainlint.toml", 'ignore = ["demo-faulty"]\n')
    assert check("-", "--stdin-filename", "src/a.py", stdin=b"faulty()\n").code == 0
    assert check("-", "--stdin-filename", "a.py", stdin=b"faulty()\n").code == 1


def test_an_excluded_name_is_left_alone_under_force_exclude(check: Check) -> None:
    arguments = ("-", "--stdin-filename", "venv/a.py", "--force-exclude")
    assert check(*arguments, stdin=b"faulty()\n").code == 0
    fixed = check(*arguments, "--fix", stdin=b"faulty()\n")
    assert (fixed.code, fixed.stdout) == (0, "faulty()\n")
