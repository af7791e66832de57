"""What the instruments cost: median seconds and peak memory of a step, plain and probed.

    python tests/runtime/bench_cost.py

The same script runs twice, as python would run it and under the probe's observe phase, and prints
its own step times.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from scripts import run_probe, write

STEPS = 20

HEAD = """
import resource, time
import torch
from torch import nn
torch.manual_seed(0)
"""

CNN = """
model = nn.Sequential(
    nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(64, 128, 3, padding=1), nn.BatchNorm2d(128), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(128 * 64, 10),
)
x, y = torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))
"""

TRANSFORMER = """
layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(256, 128)
        self.body = nn.TransformerEncoder(layer, 4)
        self.head = nn.Linear(128, 256)
    def forward(self, x):
        return self.head(self.body(self.embed(x))).transpose(1, 2)
model = Model()
x, y = torch.randint(0, 256, (8, 128)), torch.randint(0, 256, (8, 128))
"""

LOOP = f"""
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
times = []
for step in range({STEPS}):
    start = time.perf_counter()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    times.append(time.perf_counter() - start)
    middle = sorted(times[3:])[len(times[3:]) // 2] if len(times) > 3 else 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(middle, peak, flush=True)
"""


def _last(text: str) -> tuple[float, float]:
    seconds, peak = text.strip().splitlines()[-1].split()
    return float(seconds), float(peak)


def compare(name: str, model: str, folder: Path) -> None:
    """Print one line of the table."""
    script = write(folder, HEAD + model + LOOP, f"{name}.py")
    plain = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, cwd=folder
    )
    kept = folder / name
    args = ("--folder", str(kept), "--no-fixed-batch", "--no-extra", "--steps", str(STEPS))
    run_probe(folder, *args, str(script))
    before, after = _last(plain.stdout), _last((kept / "output.observe.0.log").read_text())
    print(
        f"{name}: plain {before[0] * 1e3:.1f} ms, probed {after[0] * 1e3:.1f} ms, "
        f"{after[0] / before[0]:.2f} times; memory {before[1]:.0f} to {after[1]:.0f} MiB, "
        f"{after[1] / before[1]:.2f} times"
    )


def main() -> None:
    """Measure both models."""
    with tempfile.TemporaryDirectory() as name:
        for model, text in (("cnn", CNN), ("transformer", TRANSFORMER)):
            compare(model, text, Path(name))


if __name__ == "__main__":
    main()
