"""Which initialisations undo one another, followed in real modules."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import probe_json, write

pytestmark = pytest.mark.slow
HEAD = """
import torch
from torch import nn
def general(module):
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=0.02)
def special(model):
    model[2].weight.data.normal_(std=0.001)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
"""
TRAIN = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(40):
    x, y = torch.randn(16, 4), torch.arange(16) % 3
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""


def _said(folder: Path, body: str) -> list[str]:
    script = write(folder, HEAD + body + TRAIN)
    _, report = probe_json(folder, "--no-fixed-batch", str(script))
    return [f["level"] for f in report["findings"] if f["rule"] == "init-after-load"]


def test_a_general_initialisation_over_a_special_one(tmp_path: Path) -> None:
    assert _said(tmp_path, "model.apply(general)\nspecial(model)\nmodel.apply(general)") == ["warn"]


def test_special_cases_last_each_time(tmp_path: Path) -> None:
    twice = "for _ in range(2):\n    model.apply(general)\n    special(model)\n"
    assert _said(tmp_path, twice) == []


def test_initialisation_after_loading(tmp_path: Path) -> None:
    loaded = "model.load_state_dict(model.state_dict())\n"
    assert _said(tmp_path, loaded + "model.apply(general)") == []
    everything = "for p in model.parameters():\n    nn.init.zeros_(p) if p.dim() < 2 else "
    assert _said(tmp_path, loaded + everything + "nn.init.normal_(p)") == ["fail"]
