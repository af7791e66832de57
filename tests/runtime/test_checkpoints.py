"""What the script saves is compared with what is alive, and missing state is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scripts import LOOP, probe_json, write

pytestmark = pytest.mark.slow

SAVING = """
import copy, random
ema = torch.optim.swa_utils.AveragedModel(model)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 100)
for epoch in range(9):
    step()
    step()
    ema.update_parameters(model)
    scheduler.step()
    torch.save({entries}, "checkpoint.pt")
"""

EVERYTHING = {
    "epoch": "epoch",
    "model": "model.state_dict()",
    "optimizer": "optimizer.state_dict()",
    "scheduler": "scheduler.state_dict()",
    "ema": "ema.state_dict()",
    "rng_state": "torch.get_rng_state()",
}


def _finding(tmp_path: Path, without: str) -> dict[str, Any] | None:
    kept = {key: value for key, value in EVERYTHING.items() if key != without}
    entries = "{" + ", ".join(f"{key!r}: {value}" for key, value in kept.items()) + "}"
    script = write(tmp_path, LOOP + SAVING.replace("{entries}", entries))
    _, report = probe_json(tmp_path, "--no-fixed-batch", "--steps", "4", str(script))
    found = [f for f in report["findings"] if f["rule"] == "resume-incomplete"]
    assert report["ending"]["kind"] == "stopped"
    return found[0] if found else None


def test_a_complete_checkpoint_is_no_finding(tmp_path: Path) -> None:
    assert _finding(tmp_path, "") is None


@pytest.mark.parametrize(
    ("key", "value", "is_state"),
    [
        ("random", "torch.get_rng_state()", True),
        ("seeds", "[random.getstate(), torch.get_rng_state()]", True),
        ("generators", "{'python': random.getstate()}", True),
        ("rng", "False", False),
        ("random_state", "42", False),
        ("seeds", "[1, 2, 3]", False),
    ],
)
def test_random_state_is_told_by_what_it_is(
    tmp_path: Path, key: str, value: str, is_state: bool
) -> None:
    entries = {**{k: v for k, v in EVERYTHING.items() if k != "rng_state"}, key: value}
    text = "{" + ", ".join(f"{key!r}: {value}" for key, value in entries.items()) + "}"
    script = write(tmp_path, LOOP + SAVING.replace("{entries}", text))
    _, report = probe_json(tmp_path, "--no-fixed-batch", "--steps", "4", str(script))
    found = [f for f in report["findings"] if f["rule"] == "resume-incomplete"]
    assert (found == []) is is_state


@pytest.mark.parametrize(
    ("without", "said", "level"),
    [
        ("optimizer", "not the state of optimizer", "warn"),
        ("scheduler", "not the state of scheduler", "warn"),
        ("ema", "not the state of the averaged weights (EMA)", "warn"),
        ("rng_state", "not the state of random number generators", "note"),
    ],
)
def test_missing_state_is_named(tmp_path: Path, without: str, said: str, level: str) -> None:
    found = _finding(tmp_path, without)
    assert found is not None
    assert found["evidence"].endswith(said)
    assert found["level"] == level


def test_ema_saved_under_another_name_is_found_by_its_memory(tmp_path: Path) -> None:
    entries = "{'epoch': epoch, 'model': model.state_dict(), 'optimizer': optimizer.state_dict(), "
    entries += "'scheduler': scheduler.state_dict(), 'best': dict(ema.module.state_dict()), "
    entries += "'rng': torch.get_rng_state()}"
    script = write(tmp_path, LOOP + SAVING.replace("{entries}", entries))
    _, report = probe_json(tmp_path, "--no-fixed-batch", "--steps", "4", str(script))
    assert "resume-incomplete" in report["passed"]
