"""A script that moves its weights without an optimizer is stopped like any other."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import probe_json, write

pytestmark = pytest.mark.slow
ENDLESS = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
x, y = torch.randn(16, 4), torch.arange(16) % 3
while True:
    model.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.1 * parameter.grad
"""


def test_it_ends_when_enough_was_seen(tmp_path: Path) -> None:
    code, report = probe_json(tmp_path, str(write(tmp_path, ENDLESS)))
    assert (code, report["ending"]) == (0, {"kind": "stopped", "detail": "all steps were seen"})
    assert report["findings"] == []
