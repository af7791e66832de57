"""Memory and precision: every token weighs the same, nothing is dropped, options agree."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from .trainer import check_resumes_bit_identically, finish, load, losses, rows, start

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

RECIPE = "memory/mixed_precision.py"
SHORT = ("--steps=6", "--width=32", "--layers=2")


@pytest.fixture(scope="module")
def recipe() -> Any:
    return load(RECIPE)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    """The losses of a short run without any option."""
    out = tmp_path_factory.mktemp("plain")
    finish(RECIPE, out, *SHORT)
    return list(losses(out).values())


def test_the_last_window_is_whatever_is_left(recipe: Any) -> None:
    assert list(recipe.windows(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(recipe.windows(range(1), 4)) == [[0]]


def test_padding_is_no_target_and_the_end_is(recipe: Any) -> None:
    tokens, targets = recipe.collate([b"ab", b"abcd"], context=16)
    assert tokens.tolist()[0] == [recipe.BEGIN, 97, 98, recipe.PAD, recipe.PAD]
    assert targets.tolist()[0] == [97, 98, recipe.END, recipe.IGNORE, recipe.IGNORE]


def test_how_a_step_is_cut_does_not_matter(tmp_path: Path) -> None:
    finish(RECIPE, tmp_path / "one", *SHORT, "--micro-batch=32", "--accumulate=1")
    finish(RECIPE, tmp_path / "eight", *SHORT, "--micro-batch=4", "--accumulate=8")
    one, eight = losses(tmp_path / "one"), losses(tmp_path / "eight")
    assert len(one) == 6
    assert list(eight.values()) == pytest.approx(list(one.values()), rel=1e-4)


def test_checkpointed_activations_give_the_same_losses(plain: list[float], tmp_path: Path) -> None:
    finish(RECIPE, tmp_path, *SHORT, "--checkpoint-activations")
    assert list(losses(tmp_path).values()) == plain


def test_fused_steps_like_plain(plain: list[float], tmp_path: Path) -> None:
    finish(RECIPE, tmp_path, *SHORT, "--optimizer=fused")
    assert list(losses(tmp_path).values()) == pytest.approx(plain, rel=1e-4)


def test_adafactor_keeps_next_to_nothing(recipe: Any) -> None:
    settings = recipe.Settings(optimizer="adafactor")
    model = recipe.GPT(settings)
    optimizer = recipe.build_optimizer(model, settings)
    model(torch.zeros(2, 8, dtype=torch.long)).sum().backward()
    optimizer.step()
    kept = sum(
        value.numel()
        for state in optimizer.state.values()
        for value in state.values()
        if isinstance(value, torch.Tensor)
    )
    assert kept < 0.05 * sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("amp", ["bf16", "fp16"])
def test_half_precision_stays_close(amp: str, plain: list[float], tmp_path: Path) -> None:
    finish(RECIPE, tmp_path, *SHORT, f"--amp={amp}")
    assert list(losses(tmp_path).values()) == pytest.approx(plain, rel=0.02)
    scales = {float(value) for _, name, value in rows(tmp_path) if name == "scale"}
    assert scales == ({1.0} if amp == "bf16" else {65536.0})


def test_8bit_says_what_it_needs(tmp_path: Path) -> None:
    if importlib.util.find_spec("bitsandbytes"):
        pytest.skip("bitsandbytes is installed")
    (process,) = start(RECIPE, tmp_path, *SHORT, "--optimizer=8bit")
    output, _ = process.communicate()
    assert process.returncode != 0
    assert "pip install bitsandbytes" in output


@pytest.mark.parametrize("flags", [(), ("--amp=fp16", "--width=16")])
def test_killed_and_resumed(flags: tuple[str, ...], tmp_path: Path) -> None:
    check_resumes_bit_identically(RECIPE, tmp_path, "--steps=40", "--micro-batch=4", *flags)
