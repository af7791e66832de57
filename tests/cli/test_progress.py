"""The progress bar: only for people, and only when a run takes long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.cli import progress
from trainlint.cli.progress import ProgressBar

if TYPE_CHECKING:
    import pytest


def test_a_short_run_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar(2, shown=True) as bar:
        bar.advance(1)
        bar.advance(1)
    assert capsys.readouterr() == ("", "")


def test_a_long_run_shows_how_far_it_is_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", 0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with ProgressBar(20, shown=True) as bar:
        bar.advance(7)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "7/20" in shown.err.replace(" ", "")


def test_nobody_watches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", 0)
    with ProgressBar(20, shown=False) as bar:
        bar.advance(7)
    assert capsys.readouterr() == ("", "")
