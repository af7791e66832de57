"""``trainlint probe --check``: what the run says of each static finding."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import probe_here, probe_json, write

pytestmark = pytest.mark.slow

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from loops import evaluate, train

torch.manual_seed(0)
x, y = torch.randn(64, 4), torch.arange(64) % 3
loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    train(model, loader, optimizer)
    model.eval()
    evaluate(model, loader)
    model.train()
"""

LOOPS = """
import torch
from torch import nn


def train(model, loader, optimizer):
    criterion = nn.CrossEntropyLoss()
    for images, labels in loader:
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()


def evaluate(model, loader):
    with torch.no_grad():
        return sum((model(a).argmax(1) == b).sum().item() for a, b in loader)


def never_called(model, loader, optimizer):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images).softmax(dim=1), labels)
        loss.backward()
        optimizer.step()
"""


def test_confirmed_and_not_reached(tmp_path: Path) -> None:
    write(tmp_path, LOOPS, "loops.py")
    args = ("--check", "--no-fixed-batch", str(write(tmp_path, SCRIPT)))
    _, report = probe_json(tmp_path, *args)
    assert not (tmp_path / ".trainlint_cache").exists()
    states = {one["rule"]: one["state"] for one in report["static"]}
    assert states["zero-grad-missing"] == "confirmed"
    assert states["softmax-before-cross-entropy"] == "not reached"


def test_static_findings_are_shown(tmp_path: Path) -> None:
    write(tmp_path, LOOPS, "loops.py")
    args = ("--check", "--no-fixed-batch", str(write(tmp_path, SCRIPT)))
    assert "confirmed: " in probe_here(tmp_path, *args).stdout
