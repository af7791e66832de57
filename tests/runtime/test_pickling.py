"""A script that pickles functions of torch, alone or inside a model, can do so under the probe."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import LOOP, probe_json, write

pytestmark = pytest.mark.slow
SAVES = """
import io, pickle
layer = nn.TransformerEncoderLayer(8, 2, 16)
class Holder:
    activation, built_in, loss = nn.functional.relu, torch.relu, nn.functional.cross_entropy
for _ in range(30):
    step()
    torch.save(layer, "whole.pt")
    restored = torch.load("whole.pt", weights_only=False)
    for value in vars(Holder).values():
        if callable(value):
            assert pickle.loads(pickle.dumps(value)) is not None
    torch.save([nn.functional.relu, torch.relu], io.BytesIO())
"""


def test_functions_and_whole_models(tmp_path: Path) -> None:
    script = write(tmp_path, LOOP + SAVES)
    code, report = probe_json(tmp_path, "--no-fixed-batch", str(script))
    assert (code, report["ending"]["kind"]) == (0, "stopped"), report["ending"]
    assert report["phases"]["observe"]["steps"] > 10
