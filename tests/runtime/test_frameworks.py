"""Frameworks built on torch need no adapter: the instruments sit in torch itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import probe_json, write

pytestmark = pytest.mark.slow

DATA = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))
"""

LIGHTNING = """
import lightning
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = net
    def training_step(self, batch, index):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])
    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 9)]
lightning.Trainer(max_epochs=9, accelerator="cpu").fit(Module(), loader)
"""

ACCELERATE = """
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
for epoch in range(9):
    for a, b in loader:
        optimizer.zero_grad()
        accelerator.backward(nn.functional.cross_entropy(net(a), b))
        optimizer.step()
    scheduler.step()
    accelerator.save_state(f"state-{epoch}")
"""

TRANSFORMERS = """
from transformers import Trainer, TrainingArguments
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net
    def forward(self, x, labels):
        logits = self.net(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}
rows = [{"x": a, "labels": b} for a, b in zip(x, y)]
settings = TrainingArguments(
    "out", num_train_epochs=9, learning_rate=1e-2, save_steps=4, warmup_steps=4,
    report_to=[], use_cpu=True,
)
Trainer(Model(), settings, train_dataset=rows).train()
"""


@pytest.mark.parametrize(
    ("package", "loop"),
    [("lightning", LIGHTNING), ("accelerate", ACCELERATE), ("transformers", TRANSFORMERS)],
)
def test_frameworks(package: str, loop: str, tmp_path: Path) -> None:
    pytest.importorskip(package)
    script = write(tmp_path, DATA + loop)
    code, report = probe_json(tmp_path, "--steps", "20", str(script))
    assert (code, report["instrument_errors"]) == (0, [])
    assert report["phases"]["observe"]["steps"] >= 20
    assert [f for f in report["findings"] if f["level"] in ("fail", "warn")] == []
