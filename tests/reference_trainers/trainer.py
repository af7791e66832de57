"""Start trainers, kill them, and compare what they log; load them as modules for small checks."""

import csv
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

from .summary import ENVIRONMENT, TRAINERS, read

Processes = list["subprocess.Popen[str]"]


def load(recipe: str) -> ModuleType:
    """The trainer as a module, wherever it lies."""
    name = "trainer_" + recipe.removesuffix(".py").replace("/", "_")
    spec = importlib.util.spec_from_file_location(name, TRAINERS / recipe)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def start(recipe: str, out: Path, *flags: str, ranks: int = 0) -> Processes:
    """One process, or one for each rank with the variables that torchrun would set."""
    command = [sys.executable, str(TRAINERS / recipe), "--device=cpu", f"--out={out}"]
    command += ["--log=csv", "--log-every=1", *flags]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    group = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    environments = [
        {**ENVIRONMENT, **group, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        for rank in range(ranks)
    ]
    return [
        subprocess.Popen(
            command,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for environment in environments or [ENVIRONMENT]
    ]


def finish(recipe: str, out: Path, *flags: str, ranks: int = 0) -> str:
    """Run to the end; what the first process printed."""
    processes = start(recipe, out, *flags, ranks=ranks)
    outputs = [process.communicate(timeout=1800)[0] for process in processes]
    for process, output in zip(processes, outputs, strict=True):
        assert process.returncode == 0, output[-4000:]
    return outputs[0]


def kill_at(recipe: str, out: Path, step: int, *flags: str, ranks: int = 0) -> None:
    """Start, and kill all processes with SIGKILL once `step` is logged."""
    processes = start(recipe, out, *flags, ranks=ranks)
    while all(process.poll() is None for process in processes):
        if max((logged for logged, _, _ in rows(out)), default=0) >= step:
            break
        time.sleep(0.01)
    for process in processes:
        os.kill(process.pid, signal.SIGKILL)
    for process in processes:
        output, _ = process.communicate()
        assert process.returncode == -signal.SIGKILL, f"ended by itself: {output[-4000:]}"


def rows(out: Path) -> list[tuple[int, str, str]]:
    """(step, name, value as it was written); a line cut short by the kill has fewer cells."""
    if not (out / "log.csv").exists():
        return []
    with (out / "log.csv").open(newline="") as file:
        return [(int(row[0]), row[1], row[2]) for row in csv.reader(file) if len(row) == 3]


def losses(out: Path) -> dict[int, float]:
    return {step: float(value) for step, name, value in rows(out) if name == "train_loss"}


def check_resumes_bit_identically(recipe: str, folder: Path, *flags: str, ranks: int = 0) -> None:
    """A run killed twice, once after it was itself resumed, logs and ends as a whole one does."""
    flags = ("--checkpoint-every=7", *flags)
    read(finish(recipe, folder / "whole", *flags, ranks=ranks))  # its summary states a target
    expected = {(step, name): value for step, name, value in rows(folder / "whole")}
    last = max(step for step, _ in expected)
    killed = folder / "killed"
    kill_at(recipe, killed, int(0.4 * last), "--resume", *flags, ranks=ranks)
    kill_at(recipe, killed, int(0.75 * last), "--resume", *flags, ranks=ranks)
    assert "resumed from" in finish(recipe, killed, "--resume", *flags, ranks=ranks)
    # Steps between the last checkpoint and the kill were done twice, and must agree both times.
    for step, name, value in rows(killed):
        assert value == expected[step, name], f"{name} differs at step {step}"
    assert {(step, name) for step, name, _ in rows(killed)} == set(expected)
    check_same_weights(folder / "whole", killed)


def check_same_weights(one: Path, other: Path) -> None:
    """The last checkpoints of two runs hold the same weights and averages, bit by bit."""
    import torch

    newest = sorted(one.glob("step_*"))[-1]
    if newest.is_dir():  # sharded: its losses have spoken for it
        return
    ours = torch.load(newest, weights_only=True)
    theirs = torch.load(other / newest.name, weights_only=True)
    for part in ("model", "ema"):
        for name, tensor in ours.get(part, {}).items():
            assert torch.equal(tensor, theirs[part][name]), f"{part}: {name}"
