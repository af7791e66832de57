"""DDP and FSDP2 on two gloo ranks on the CPU: equal results, resumption on other numbers."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .summary import ENVIRONMENT, TRAINERS
from .trainer import check_resumes_bit_identically, finish, kill_at, load, losses, rows

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
pytestmark = pytest.mark.slow

RECIPES = ["scale/ddp.py", "scale/fsdp2.py"]
SHORT = ("--steps=26", "--checkpoint-every=7")  # three epochs: 11 steps each


@pytest.fixture(scope="module", params=RECIPES)
def whole(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """(recipe, folder) of a run with two ranks that nobody disturbed."""
    out = tmp_path_factory.mktemp("whole")
    finish(request.param, out, *SHORT, ranks=2)
    return request.param, out


def validation(out: Path) -> dict[tuple[int, str], float]:
    return {(step, name): float(value) for step, name, value in rows(out) if "val_" in name}


def test_one_rank_trains_like_two(whole: tuple[str, Path], tmp_path: Path) -> None:
    recipe, out = whole
    finish(recipe, tmp_path, *SHORT)
    assert list(losses(tmp_path).values()) == pytest.approx(list(losses(out).values()), rel=1e-3)
    two = validation(out)
    assert validation(tmp_path) == pytest.approx(two, rel=1e-2)
    # 361 held-out samples: one of two ranks has one more, and none counts twice.
    for (_, name), value in two.items():
        if name == "val_accuracy":
            assert value * 361 == pytest.approx(round(value * 361), abs=1e-6)


@pytest.mark.parametrize(("before", "after"), [(2, 1), (0, 2)])
def test_resumes_on_another_number_of_ranks(
    whole: tuple[str, Path], before: int, after: int, tmp_path: Path
) -> None:
    recipe, out = whole
    kill_at(recipe, tmp_path, 16, *SHORT, ranks=before)
    output = finish(recipe, tmp_path, "--resume", *SHORT, ranks=after)
    assert "resumed from" in output
    expected = losses(out)
    resumed = losses(tmp_path)
    assert set(resumed) == set(expected)
    for step, loss in resumed.items():
        assert loss == pytest.approx(expected[step], rel=5e-3), f"step {step}"


@pytest.mark.parametrize("recipe", RECIPES)
def test_killed_and_resumed(recipe: str, tmp_path: Path) -> None:
    check_resumes_bit_identically(recipe, tmp_path, "--steps=26", ranks=2)


@pytest.mark.parametrize("recipe", RECIPES)
def test_under_torchrun(recipe: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += ["--", str(TRAINERS / recipe), "--device=cpu", "--steps=3", f"--out={tmp_path}"]
    command += ["--log", "csv"]  # would be ambiguous among torchrun's own without the "--"
    process = subprocess.run(
        command, env=ENVIRONMENT, text=True, capture_output=True, timeout=1800, check=False
    )
    assert process.returncode == 0, process.stderr[-4000:]
    assert re.search(r"^ranks: +2$", process.stdout, flags=re.MULTILINE)


def test_no_layer_for_gpus_alone_on_a_cpu() -> None:
    module = load("scale/ddp.py")

    def layers(device: str) -> set[str]:
        model = module.build_model(module.Settings(data="photos", device=device), classes=3)
        return {type(layer).__name__ for layer in model.modules()}

    assert "SyncBatchNorm" in layers("cuda")
    assert "SyncBatchNorm" not in layers("cpu")


@pytest.mark.parametrize("recipe", RECIPES)
def test_learning_rates_follow_the_batch(recipe: str) -> None:
    module = load(recipe)

    def scaled(scaling: str) -> float:
        settings = module.Settings(global_batch=1024, base_batch=64, scaling=scaling)
        return float(module.scaled(0.1, settings))

    assert scaled("linear") == pytest.approx(1.6)
    assert scaled("sqrt") == pytest.approx(0.4)
    assert scaled("none") == pytest.approx(0.1)


@pytest.mark.parametrize("recipe", RECIPES)
def test_warm_up_grows_with_the_batch_in_samples(recipe: str) -> None:
    module = load(recipe)

    def samples(batch: int) -> int:
        settings = module.Settings(global_batch=batch, base_batch=64, base_warmup_steps=10)
        return int(module.warmup_steps(settings)) * batch

    assert samples(64) == 640
    assert samples(1024) == 16 * 640
    assert samples(16) == 640  # a smaller batch needs no shorter one


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_number_of_ranks_sees_the_same_batches(recipe: str) -> None:
    module = load(recipe)

    def batches(ranks: int, position: int) -> list[set[tuple[int, int]]]:
        samplers = [
            module.ResumableDistributedSampler(1437, rank, ranks, seed=3) for rank in range(ranks)
        ]
        shares = []
        for sampler in samplers:
            sampler.set_epoch(5)
            sampler.position = position
            shares.append(list(sampler))
            assert len(sampler) == len(shares[-1])
        size = 128 // ranks
        return [
            {sample for share in shares for sample in share[i * size : (i + 1) * size]}
            for i in range((1437 - position) // 128)
        ]

    expected = batches(1, 0)
    assert all(len(batch) == 128 for batch in expected)
    assert batches(2, 0) == expected
    assert batches(4, 0) == expected
    assert batches(2, 3 * 128) == expected[3:]
