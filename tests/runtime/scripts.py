"""Running small scripts under the probe, for tests that need torch."""

from __future__ import annotations

import atexit
import functools
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from trainlint.runtime.command import probe
from trainlint.runtime.launch.processes import Nursery

PROGRAMS = Path(__file__).parent / "programs"
# The tests ask what the probe sees, not how busy the machine is.
PATIENCE = ("--budget", "900", "--timeout", "600")

LOOP = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(16, 4), torch.arange(16) % 3
def step():
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()
"""


def probe_command(*args: str) -> list[str]:
    """The command line of the probe."""
    return [sys.executable, "-m", "trainlint.runtime", *args]


@functools.cache
def shared_nursery() -> Nursery:
    """One process that has imported torch, for all probes of a test session."""
    nursery = Nursery()
    atexit.register(nursery.close)
    return nursery


def probe_here(cwd: Path, *args: str) -> Result:
    """Run the command in this process; only the script itself gets a process, quickly."""
    before = os.getcwd()
    os.chdir(cwd)
    try:
        return CliRunner().invoke(probe, list(args), obj=shared_nursery())
    finally:
        os.chdir(before)


def probe_json(cwd: Path, *args: str) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON report."""
    done = probe_here(cwd, "--output-format", "json", *PATIENCE, *args)
    assert done.stdout, done.output
    return done.exit_code, json.loads(done.stdout)


def write(folder: Path, text: str, name: str = "train.py") -> Path:
    """Save a script."""
    path = folder / name
    path.write_text(text)
    return path


def free_port() -> str:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])
