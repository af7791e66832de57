"""Every trainer, started with no arguments, reaches the target that it prints."""

import pytest

from .summary import RECIPES, read, run


def test_reads_the_target_from_a_summary() -> None:
    output = "step 9/9 loss 0.1\nval_accuracy:     0.9800\ntarget:           val_accuracy >= 0.97\n"
    summary = read(output)
    assert (summary.name, summary.target, summary.value) == ("val_accuracy", 0.97, 0.98)
    assert summary.reached
    assert not read(output.replace("0.9800", "0.9600")).reached
    assert read("loss: 1.9\ntarget: loss <= 2.0\n").reached


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_reaches_its_target_within_a_minute_of_one_core(recipe: str) -> None:
    pytest.importorskip("torchvision")
    summary = run(recipe)
    assert summary.reached, (
        f"{summary.name} is {summary.value}, not {summary.sign} {summary.target}"
    )
    assert summary.cpu_seconds < 60


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("self_supervised/siamese.py", "--loss=contrastive"),
        ("self_supervised/large_batch.py", "--optimizer=lamb", "--scaling=sqrt"),
    ],
)
def test_alternatives_reach_the_target_as_well(arguments: tuple[str, ...]) -> None:
    pytest.importorskip("torchvision")
    recipe, *flags = arguments
    summary = run(recipe, *flags)
    assert summary.reached, (
        f"{summary.name} is {summary.value}, not {summary.sign} {summary.target}"
    )


@pytest.mark.slow
def test_ffcv_missing_is_said_clearly() -> None:
    pytest.importorskip("torchvision")
    pytest.importorskip("webdataset")
    with pytest.raises(AssertionError, match="FFCV, which is not installed"):
        run("vision/shards.py", "--loader=ffcv", "--steps=1")
