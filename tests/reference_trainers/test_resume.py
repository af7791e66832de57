"""Killed with SIGKILL at any moment and started again, a trainer's losses go on bit-identically.

This is also the walk of continuous integration: each trainer here runs from its first step to its
summary, shortened. The trainers of text, fine-tuning, scale and precision are walked in the tests
of their own. What all of them reach in full is measured by `make bench-trainers`.
"""

from pathlib import Path

import pytest

from .trainer import (
    check_resumes_bit_identically,
    check_same_weights,
    finish,
    kill_at,
    losses,
    start,
)

pytest.importorskip("torch")
pytest.importorskip("torchvision")
pytestmark = pytest.mark.slow

# Recipe -> the settings that make it short, with two epochs or more where there are epochs: the run
# is killed in a later one than it began in.
SHORT = {
    "classics/generalisation.py": ["--epochs=5"],
    "classics/tabular.py": ["--epochs=20", "--patience=20"],
    "debugging/pictures.py": ["--steps=40"],
    "diffusion/ddpm.py": ["--steps=40", "--eval-every=16", "--eval-samples=64"],
    "diffusion/flow_matching.py": ["--steps=40", "--eval-every=16", "--eval-samples=64"],
    "self_supervised/byol.py": ["--steps=30", "--batch-size=64"],
    "self_supervised/large_batch.py": ["--steps=14", "--batch-size=250"],
    "self_supervised/siamese.py": ["--steps=50"],
    "self_supervised/simclr.py": ["--steps=30", "--batch-size=64"],
    "vision/convnext.py": ["--steps=50"],
    "vision/progressive_resizing.py": ["--steps=60"],
    "vision/shards.py": ["--steps=50"],
    "vision/vit.py": ["--steps=40"],
}


@pytest.mark.parametrize("recipe", SHORT)
def test_killed_and_resumed_continues_bit_identically(recipe: str, tmp_path: Path) -> None:
    if recipe == "vision/shards.py":
        pytest.importorskip("webdataset")
    if recipe == "debugging/pictures.py":
        pytest.importorskip("matplotlib")
    check_resumes_bit_identically(recipe, tmp_path, *SHORT[recipe])


def test_a_resumed_run_can_be_killed_and_resumed_again(tmp_path: Path) -> None:
    check_resumes_bit_identically("vision/resnet.py", tmp_path, "--steps=60", kills=(0.4, 0.75))


def test_killed_while_saving_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    flags = ("--steps=20", "--checkpoint-every=7")
    finish("vision/resnet.py", tmp_path / "whole", *flags)
    killed = tmp_path / "killed"
    kill_at("vision/resnet.py", killed, 2, *flags, moment="saving")
    assert sorted(path.name for path in killed.glob("step_*")) == [
        "step_000000007.pt",
        "step_000000014.partial",
    ]
    output = finish("vision/resnet.py", killed, "--resume", *flags)
    assert f"resumed from {killed / 'step_000000007.pt'}" in output
    assert losses(killed) == losses(tmp_path / "whole")
    check_same_weights(tmp_path / "whole", killed)


def test_a_second_run_does_not_mix_with_the_checkpoints_of_the_first(tmp_path: Path) -> None:
    finish("vision/resnet.py", tmp_path, "--steps=8", "--checkpoint-every=7")
    [process] = start("vision/resnet.py", tmp_path, "--steps=8")
    output, _ = process.communicate(timeout=600)
    assert process.returncode != 0
    assert "--resume" in output


def test_keeps_the_last_checkpoints_and_the_best(tmp_path: Path) -> None:
    finish("vision/resnet.py", tmp_path, "--steps=40", "--checkpoint-every=7", "--keep=2")
    kept = sorted(path.name for path in tmp_path.glob("*.pt"))
    assert kept == ["best.pt", "step_000000035.pt", "step_000000040.pt"]
    assert not list(tmp_path.glob("*.partial"))
