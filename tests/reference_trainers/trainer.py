"""Start trainers, kill them, and compare what they log; load them as modules for small checks."""

import csv
import importlib.util
import signal
import socket
import subprocess
import sys
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


def start(
    recipe: str, out: Path, *flags: str, ranks: int = 0, killed: tuple[str, int] | None = None
) -> Processes:
    """One process, or one for each rank with the variables that torchrun would set.

    `killed` names a moment, as killed.py takes it, at which the first of them gets SIGKILL.
    """
    command = [str(TRAINERS / recipe), "--device=cpu", f"--out={out}"]
    command += ["--log=csv", "--log-every=1", *flags]
    if killed is not None:
        moment, last = killed
        command = [str(Path(__file__).with_name("killed.py")), moment, str(last), *command]
    command = [sys.executable, *command]
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


def kill_at(
    recipe: str, out: Path, step: int, *flags: str, ranks: int = 0, moment: str = "logging"
) -> None:
    """Start, and kill with SIGKILL once `step` is logged; then all other ranks, as torchrun does.

    With `moment` "saving", in the middle of writing a checkpoint, the `step`-th one.
    """
    first, *others = start(recipe, out, *flags, ranks=ranks, killed=(moment, step))
    output, _ = first.communicate(timeout=1800)
    for process in others:
        process.kill()
        process.communicate()
    assert first.returncode == -signal.SIGKILL, f"ended by itself: {output[-4000:]}"


def rows(out: Path) -> list[tuple[int, str, str]]:
    """(step, name, value as it was written); a line cut short by the kill has fewer cells."""
    if not (out / "log.csv").exists():
        return []
    with (out / "log.csv").open(newline="") as file:
        return [(int(row[0]), row[1], row[2]) for row in csv.reader(file) if len(row) == 3]


def losses(out: Path) -> dict[int, float]:
    return {step: float(value) for step, name, value in rows(out) if name == "train_loss"}


def check_resumes_bit_identically(
    recipe: str, folder: Path, *flags: str, ranks: int = 0, kills: tuple[float, ...] = (0.6,)
) -> None:
    """A run killed after these shares of its steps, and resumed, logs and ends as a whole one."""
    flags = ("--checkpoint-every=7", *flags)
    read(finish(recipe, folder / "whole", *flags, ranks=ranks))  # its summary states a target
    expected = {(step, name): value for step, name, value in rows(folder / "whole")}
    last = max(step for step, _ in expected)
    killed = folder / "killed"
    for share in kills:
        kill_at(recipe, killed, int(share * last), "--resume", *flags, ranks=ranks)
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
