"""The progress bar in terminals of two widths."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from trainlint.runtime.command import PHASES, ProbeProgress


def frames(width: int, *said: tuple[str, str]) -> str:
    """What is on the screen after each update."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=True, color_system=None)
    with ProbeProgress(console) as progress:
        for phase, words in said:
            progress(phase, words)
            progress._bar.refresh()
    return stream.getvalue()


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("phase", PHASES)
def test_phase_step_and_loss_fit_on_one_line(width: int, phase: str) -> None:
    text = frames(width, (phase, ""), (phase, "7 30 0.69315"))
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n").splitlines()
    assert any(PHASES[phase] in line and "step 7/30  loss 0.69315" in line for line in lines)
    assert max(map(len, lines)) <= width


def test_a_step_without_a_loss() -> None:
    assert re.search(r"step 3/13\s", frames(80, ("observe", "3 13 ")))
