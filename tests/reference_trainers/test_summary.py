"""How the summaries of trainers are read, and what they say when something is missing."""

import pytest

from .summary import read, run


def test_reads_the_target_from_a_summary() -> None:
    output = "step 9/9 loss 0.1\nval_accuracy:     0.9800\ntarget:           val_accuracy >= 0.97\n"
    summary = read(output)
    assert (summary.name, summary.target, summary.value) == ("val_accuracy", 0.97, 0.98)
    assert summary.reached
    assert not read(output.replace("0.9800", "0.9600")).reached
    assert read("loss: 1.9\ntarget: loss <= 2.0\n").reached


@pytest.mark.slow
def test_ffcv_missing_is_said_clearly() -> None:
    pytest.importorskip("torchvision")
    pytest.importorskip("webdataset")
    with pytest.raises(AssertionError, match="FFCV, which is not installed"):
        run("vision/shards.py", "--loader=ffcv", "--steps=1")
