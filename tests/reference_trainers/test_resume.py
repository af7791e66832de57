"""Killed with SIGKILL at any moment and started again, a trainer's losses go on bit-identically."""

import csv
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .summary import ENVIRONMENT, TRAINERS

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
pytestmark = pytest.mark.slow

# Recipe -> the settings that make it short. Two epochs or more where there are epochs, so that the
# run is also killed on the way from one to the next.
SHORT = {
    "classics/generalisation.py": ["--epochs=5"],
    "classics/tabular.py": ["--epochs=8"],
    "debugging/pictures.py": ["--steps=40"],
    "diffusion/ddpm.py": ["--steps=40"],
    "diffusion/flow_matching.py": ["--steps=40"],
    "fine_tuning/instruction_tuning.py": ["--steps=30"],
    "fine_tuning/lora.py": ["--steps=30"],
    "fine_tuning/transfer.py": ["--steps=30"],
    "language/gpt.py": ["--steps=30"],
    "memory/mixed_precision.py": ["--steps=30"],
    "scale/ddp.py": ["--steps=30"],
    "scale/fsdp2.py": ["--steps=30"],
    "self_supervised/byol.py": ["--steps=30", "--batch-size=64"],
    "self_supervised/large_batch.py": ["--steps=30"],
    "self_supervised/siamese.py": ["--steps=50"],
    "self_supervised/simclr.py": ["--steps=30", "--batch-size=64"],
    "vision/convnext.py": ["--steps=50"],
    "vision/progressive_resizing.py": ["--steps=60"],
    "vision/resnet.py": ["--steps=60"],
    "vision/shards.py": ["--steps=50"],
    "vision/vit.py": ["--steps=40"],
}


def start(recipe: str, out: Path, *more: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(TRAINERS / recipe), "--device=cpu", f"--out={out}"]
    command += ["--log=csv", "--log-every=1", "--checkpoint-every=7", *SHORT[recipe], *more]
    return subprocess.Popen(
        command, env=ENVIRONMENT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def finish(recipe: str, out: Path, *more: str) -> str:
    process = start(recipe, out, *more)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    return output


def logged(out: Path) -> list[tuple[int, str, str]]:
    """(step, name, value as it was written); a line cut short by the kill has fewer cells."""
    if not (out / "log.csv").exists():
        return []
    with (out / "log.csv").open(newline="") as file:
        return [(int(row[0]), row[1], row[2]) for row in csv.reader(file) if len(row) == 3]


@pytest.mark.parametrize("recipe", SHORT)
def test_killed_and_resumed_continues_bit_identically(recipe: str, tmp_path: Path) -> None:
    finish(recipe, tmp_path / "whole")
    expected = {(step, name): value for step, name, value in logged(tmp_path / "whole")}
    last_step = max(step for step, _ in expected)

    killed = tmp_path / "killed"
    for share in (0.3, 0.75):  # killed twice: the second time it was itself resumed
        process = start(recipe, killed, "--resume")
        while process.poll() is None:
            if max((step for step, _, _ in logged(killed)), default=0) >= share * last_step:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "ended before it could be killed"
    assert "resumed from" in finish(recipe, killed, "--resume")

    # Steps between the last checkpoint and the kill were done twice, and must agree both times.
    for step, name, value in logged(killed):
        assert value == expected[step, name], f"{name} differs at step {step}"
    assert {(step, name) for step, name, _ in logged(killed)} == set(expected)

    final = sorted((tmp_path / "whole").glob("step_*"))[-1]
    if final.is_file():  # a sharded checkpoint is a folder; its losses have spoken for it
        whole = torch.load(final, weights_only=True)
        resumed = torch.load(killed / final.name, weights_only=True)
        for part in ("model", "ema"):
            for name, tensor in whole.get(part, {}).items():
                assert torch.equal(tensor, resumed[part][name]), f"{part}: {name}"


def test_a_second_run_does_not_mix_with_the_checkpoints_of_the_first(tmp_path: Path) -> None:
    finish("vision/resnet.py", tmp_path, "--steps=8")
    process = start("vision/resnet.py", tmp_path, "--steps=8")
    output, _ = process.communicate(timeout=600)
    assert process.returncode != 0
    assert "--resume" in output


def test_keeps_the_last_checkpoints_and_the_best(tmp_path: Path) -> None:
    finish("vision/resnet.py", tmp_path, "--steps=40", "--keep=2")
    kept = sorted(path.name for path in tmp_path.glob("*.pt"))
    assert kept == ["best.pt", "step_000000035.pt", "step_000000040.pt"]
    assert not list(tmp_path.glob("*.partial"))
