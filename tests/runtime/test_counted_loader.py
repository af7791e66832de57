"""A script that counts its batches and asks for each is given all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import LOOP, probe_json, write

pytestmark = pytest.mark.slow
COUNTED = """
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.randn(256, 4), torch.arange(256) % 3), batch_size=8)
for epoch in range(9):
    batches = iter(loader)
    for _ in range(len(loader)):
        x, y = next(batches)
        step()
"""


def test_next_never_fails(tmp_path: Path) -> None:
    code, report = probe_json(tmp_path, "--no-fixed-batch", str(write(tmp_path, LOOP + COUNTED)))
    assert (code, report["ending"]["detail"]) == (0, "all steps were seen")
