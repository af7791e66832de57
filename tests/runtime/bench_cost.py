"""What the probe costs: seconds of a step, of a whole run, and peak memory, plain and probed.

    python tests/runtime/bench_cost.py [cnn] [transformer]

The same script runs as python would run it and under the probe. Seconds are the processor's on one
thread, so that a busy machine does not count; memory is read after the forward and after the step
(Linux). A whole probe is compared with a plain run of as many
steps as all its phases made, start-up included on both sides. Exits with 1 where a bound is missed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from scripts import probe_command, write

from trainlint.runtime.launch.launcher import FIXED_STEPS

OBSERVED, SECOND_LAP = 20, 3
STEP_BOUND, WHOLE_BOUND, MEMORY_BOUND = 2.0, 3.0, 1.3
# The first steps allocate, and the distributions are drawn once.
WARM_UP = 3
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}

HEAD = """
import sys, time
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
"""

CNN = """
model = nn.Sequential(
    nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(64, 128, 3, padding=1), nn.BatchNorm2d(128), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(128 * 64, 10),
)
data = TensorDataset(torch.randn(1280, 3, 32, 32), torch.randint(0, 10, (1280,)))
loader = DataLoader(data, batch_size=32, shuffle=True)
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
data = TensorDataset(torch.randint(0, 256, (320, 128)), torch.randint(0, 256, (320, 128)))
loader = DataLoader(data, batch_size=8, shuffle=True)
"""

LOOP = """
def memory():
    # Without the pages of libraries, which a forked process maps only when it touches them.
    text = open("/proc/self/status").read()
    return int(text.split("RssAnon:")[1].split()[0]) / 1024
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
steps, wanted = 0, int(sys.argv[1])
while steps < wanted:
    for x, y in loader:
        start = time.process_time()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        forward = time.process_time() - start
        peak = memory()
        start = time.process_time()
        loss.backward()
        optimizer.step()
        print(forward + time.process_time() - start, max(peak, memory()), flush=True)
        steps += 1
        if steps == wanted:
            break
"""


@dataclass
class Cost:
    """Processor seconds of a median step and of the whole, and the early peak in MiB."""

    step: float
    whole: float
    peak: float


def _measure(command: list[str], folder: Path, output: Path | None = None) -> Cost:
    """Run a command; the script's lines are in ``output``, or printed."""
    before = os.times()
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=folder, env=ENVIRONMENT
    )
    after = os.times()
    whole = after.children_user + after.children_system
    whole -= before.children_user + before.children_system
    text = output.read_text() if output is not None else done.stdout
    lines = [line for line in text.splitlines() if line[:1].isdigit()]
    rows = [[float(word) for word in line.split()] for line in lines]
    steps = [seconds for seconds, _ in rows[WARM_UP:OBSERVED]]
    return Cost(statistics.median(steps), whole, max(peak for _, peak in rows[:OBSERVED]))


def compare(name: str, model: str, folder: Path) -> bool:
    """Print the three lines of one model; whether all bounds hold."""
    script = write(folder, HEAD + model + LOOP, f"{name}.py")
    kept = folder / name
    probe = ["--folder", str(kept), "--steps", str(OBSERVED), "--budget", "900", str(script)]
    probed = _measure([*probe_command(*probe), "100000"], folder, kept / "output.observe.0.log")
    total = OBSERVED + SECOND_LAP + 2 * FIXED_STEPS
    plain = _measure([sys.executable, str(script), str(total)], folder)
    rows = (
        ("a step", "s", plain.step, probed.step, STEP_BOUND),
        (f"{total} steps and start-up", "s", plain.whole, probed.whole, WHOLE_BOUND),
        ("peak memory while observing", "MiB", plain.peak, probed.peak, MEMORY_BOUND),
    )
    for what, unit, before, after, bound in rows:
        met = "met" if after <= bound * before else "MISSED"
        numbers = f"plain {before:.3g} {unit}, probed {after:.3g} {unit}"
        print(f"{name}, {what}: {numbers}, {after / before:.2f} times (at most {bound}): {met}")
    return all(after <= bound * before for _, _, before, after, bound in rows)


def main() -> int:
    """Measure the models that are asked for, or both."""
    models = {"cnn": CNN, "transformer": TRANSFORMER}
    wanted = sys.argv[1:] or list(models)
    with tempfile.TemporaryDirectory() as name:
        met = [compare(model, models[model], Path(name)) for model in wanted]
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
