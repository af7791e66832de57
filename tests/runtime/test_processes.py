"""The parent's end of the nursery, with a stand-in that answers as told; no torch here."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from trainlint.runtime.launch import nursery
from trainlint.runtime.launch.processes import ChildStartError, Nursery
from trainlint.runtime.launch.spec import ChildSpec

ANSWERING = """
import sys
for line in sys.stdin:
    print({answers!r}, flush=True)
    {after}
"""


def _nursery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: str, after: str = "pass"
) -> Nursery:
    script = tmp_path / "stand_in.py"
    script.write_text(ANSWERING.format(answers=answers, after=after))
    monkeypatch.setattr(nursery, "__file__", str(script))
    return Nursery()


def _spec(tmp_path: Path) -> ChildSpec:
    return ChildSpec("train.py", False, [], str(tmp_path))


def test_a_late_exit_code_is_not_taken_for_the_next_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was 0 once, and signals to process group 0 go to ourselves."""
    home = _nursery(tmp_path, monkeypatch, "[71, 0]\n[72, null]\n[72, 3]")
    assert home.start(_spec(tmp_path), show_output=False) == 72
    assert home.exit_code(72, 60) == 3
    home.close()


def test_a_nursery_that_ends_ends_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = _nursery(tmp_path, monkeypatch, "[72, null]", after="break")
    assert home.start(_spec(tmp_path), show_output=False) == 72
    assert [home.exit_code(72, 60) for _ in range(2)] == [-signal.SIGKILL] * 2
    with pytest.raises(ChildStartError):
        home.start(_spec(tmp_path), show_output=False)
    home.close()
