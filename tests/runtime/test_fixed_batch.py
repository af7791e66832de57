"""The batch that is held, and its control with zeroed inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scripts import probe_json, write

pytestmark = pytest.mark.slow
KEYWORDS = """
import torch
from torch import nn
from torch.utils.data import DataLoader
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.loss = nn.Linear(6, 16), nn.Linear(16, 3), nn.CrossEntropyLoss()
    def forward(self, labels, values, attention_mask=None):
        logits = self.head(self.body({values}).relu())
        return self.loss(logits, labels)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), 3e-2)
rows = torch.randn(80, 6)
data = [{{"labels": (r[0] > 1).long(), "values": r, "attention_mask": torch.ones(6)}} for r in rows]
for epoch in range(9):
    for batch in DataLoader(data, 8, shuffle=True):
        optimizer.zero_grad()
        model(**batch).backward()
        optimizer.step()
"""
QUEUE = """
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 4)
        self.register_buffer("queue", torch.randn(4, 32))
    def forward(self, one, other):
        one, other = (nn.functional.normalize(self.body(v)) for v in (one, other))
        logits = torch.cat([(one * other).sum(1, keepdim=True), one @ self.queue.clone()], 1)
        self.queue = torch.cat([other.detach().T, self.queue[:, : 32 - len(other)]], 1)
        return logits * 5
model = Net()
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for _ in range(90):
    x = torch.randn(8, 6)
    logits = model(x + 0.1 * torch.randn_like(x), x)
    loss = nn.functional.cross_entropy(logits, torch.zeros(8, dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def _probe(folder: Path, text: str) -> dict[str, Any]:
    return probe_json(folder, "--steps", "4", str(write(folder, text)))[1]


@pytest.mark.parametrize(
    ("values", "warned"), [("values", False), ("torch.ones_like(values)", True)]
)
def test_inputs_given_by_keyword_are_zeroed(values: str, warned: bool, tmp_path: Path) -> None:
    report = _probe(tmp_path, KEYWORDS.format(values=values))
    found = {f["rule"] for f in report["findings"]}
    assert ("input-independent" in found, "input-independent" in report["passed"]) == (
        warned,
        not warned,
    )


def test_a_queue_makes_the_same_batch_another_task(tmp_path: Path) -> None:
    report = _probe(tmp_path, QUEUE)
    found = {n["rule"]: n["reason"] for n in report["not_checked"]}
    assert not [f for f in report["findings"] if f["level"] != "note"]
    reason = found.get("fixed-batch-not-learned", "")
    assert "fixed-batch-not-learned" in report["passed"] or reason.endswith("has seen: queue")
