"""Messages name the file of a place where it is another than the finding's."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import check_folder

_MAIN = """\
import torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from training import take_step, train


def main(model, dataset):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(dataset, sampler=DistributedSampler(dataset))
    for epoch in range(10):
        train(model, loader, optimizer)


def fit(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches:
        torch.nn.functional.cross_entropy(model(x), y).backward()
        take_step(optimizer)
"""
_TRAINING = """\
import torch


def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def take_step(optimizer):
    optimizer.step()
"""


def test_places_in_other_files(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(_MAIN)
    (tmp_path / "training.py").write_text(_TRAINING)
    rules = ["zero-grad-missing", "sampler-set-epoch-missing"]
    found = check_folder(tmp_path, rules)[tmp_path / "main.py"]
    assert [(finding.line, finding.message) for finding in found] == [
        (
            9,
            "nothing calls `set_epoch`: every epoch of the loop at line 5 of training.py has the "
            "same order",
        ),
        (
            17,
            "nothing clears the gradients between `optimizer.step()` (line 12 of training.py) and "
            "this backward pass: each step uses the sum of all gradients so far",
        ),
    ]
