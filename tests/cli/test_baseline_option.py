"""``--baseline`` and ``--write-baseline``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Check
from tests.command_line import concise

Write = Callable[..., Path]


def test_only_new_findings_are_reported(check: Check, write: Write) -> None:
    path = write("a.py", "faulty()\n")
    recorded = check("--baseline", "known.json", "--write-baseline")
    assert (recorded.code, recorded.stderr) == (0, "Recorded 1 finding in known.json.\n")
    assert check("--baseline", "known.json").code == 0
    path.write_text("\n\nfaulty()\nfaulty()\n")
    ended = check("--baseline", "known.json")
    assert (ended.code, concise(ended)) == (1, ["a.py:4:1: DEM101"])


def test_a_baseline_that_can_shrink_says_so(check: Check, write: Write) -> None:
    path = write("a.py", "faulty()\n")
    check("--baseline", "known.json", "--write-baseline")
    path.write_text("right()\n")
    ended = check("--baseline", "known.json")
    assert ended.code == 0
    assert "--write-baseline" in ended.stderr


def test_a_missing_baseline_is_2(check: Check, write: Write) -> None:
    write("a.py", "faulty()\n")
    ended = check("--baseline", "missing.json")
    assert ended.code == 2
    assert "missing.json" in ended.stderr
