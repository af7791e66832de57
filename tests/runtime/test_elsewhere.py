"""Training that goes on in another thread, in processes of the script, or in what it turns into."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from scripts import LOOP, free_port, probe_command, probe_json, write

pytestmark = pytest.mark.slow
FAST = ("--no-fixed-batch", "--steps", "4")

THREAD = """
import threading, queue
losses = queue.Queue()
def train():
    for _ in range(90): losses.put(step())
    losses.put(None)
threading.Thread(target=train).start()
while losses.get() is not None: pass
"""

HELPER_THREAD = """
import threading
threading.Thread(target=lambda: model(x)).start()
for _ in range(90): step()
"""

FAILING_THREAD = """
import threading
def train():
    step(); step()
    raise ValueError("no more data")
worker = threading.Thread(target=train)
worker.start()
worker.join()
"""

AGAIN = """
import os, sys
if "READY" not in os.environ:
    os.environ["READY"] = "1"
    os.execv(sys.executable, [sys.executable, "-u", *sys.argv])
assert sys.argv[1:] == ["--epochs", "9"], sys.argv
for _ in range(90): step()
"""

OTHER_PROGRAM = """
import os
os.execvp("echo", ["echo", "done"])
"""

RANKS = """
import os, torch, torch.distributed as dist, torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

def train(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="{port}")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    {wrap}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    x, y = torch.randn(16, 4), torch.arange(16) % 3
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    if rank == 0:
        torch.save(model.state_dict(), "model.pt")
    dist.barrier()
    model.load_state_dict(torch.load("model.pt"))
    dist.barrier()
    for _ in range(90):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

if __name__ == "__main__":
    mp.spawn(train, nprocs=2)
"""

FORKED = """
import torch.multiprocessing as mp
model.share_memory()
def train():
    for _ in range(90): step()
if __name__ == "__main__":
    workers = [mp.get_context("fork").Process(target=train) for _ in range(2)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
"""


def fails(report: dict[str, object]) -> list[str]:
    """The rules of the findings that are a FAIL."""
    return [f["rule"] for f in report["findings"] if f["level"] == "fail"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", [THREAD, HELPER_THREAD], ids=["trains", "helps"])
def test_threads(tmp_path: Path, text: str) -> None:
    code, report = probe_json(tmp_path, "--steps", "4", str(write(tmp_path, LOOP + text)))
    assert (code, report["ending"]["kind"], fails(report)) == (0, "stopped", [])
    assert report["phases"]["observe"]["steps"] >= 4
    assert report["phases"]["fixed"]["steps"] == 30


def test_a_training_thread_that_fails(tmp_path: Path) -> None:
    script = write(tmp_path, LOOP + FAILING_THREAD)
    code, report = probe_json(tmp_path, *FAST, str(script))
    assert (code, report["ending"]["detail"]) == (2, "ValueError: no more data")
    assert report["phases"]["observe"]["steps"] == 2


def test_a_script_that_starts_itself_again(tmp_path: Path) -> None:
    script = write(tmp_path, LOOP + AGAIN)
    code, report = probe_json(tmp_path, *FAST, str(script), "--epochs", "9")
    assert (code, report["ending"]["kind"]) == (0, "stopped")
    assert report["phases"]["observe"]["steps"] >= 4


def test_a_script_that_becomes_another_program(tmp_path: Path) -> None:
    code, report = probe_json(tmp_path, *FAST, str(write(tmp_path, OTHER_PROGRAM)))
    assert code == 2
    assert report["ending"]["detail"] == "it became another program: echo done"


@pytest.mark.parametrize(
    ("wrap", "found"),
    [("model = DistributedDataParallel(model)", []), ("", ["ranks-diverge"])],
    ids=["right", "not-wrapped"],
)
def test_ranks_that_the_script_starts(tmp_path: Path, wrap: str, found: list[str]) -> None:
    (tmp_path / "model.pt").write_text("precious")
    script = write(tmp_path, RANKS.format(port=free_port(), wrap=wrap))
    _, report = probe_json(tmp_path, *FAST, str(script))
    assert report["ending"]["kind"] == "stopped", report["ending"]
    assert fails(report) == found
    assert report["phases"]["observe"]["steps"] >= 4
    assert (tmp_path / "model.pt").read_text() == "precious"


def test_processes_that_share_a_model(tmp_path: Path) -> None:
    code, report = probe_json(tmp_path, *FAST, str(write(tmp_path, LOOP + FORKED)))
    assert (code, fails(report)) == (0, [])
    assert report["phases"]["observe"]["steps"] >= 4
    assert any("processes of the script train" in note for note in report["notes"])


READING = LOOP + "import sys\nn = int(input())\nfor _ in range(n): step()\n"


@pytest.mark.parametrize("said", ["2\n", ""], ids=["given", "nothing"])
def test_standard_input(tmp_path: Path, said: str) -> None:
    command = probe_command(*FAST, str(write(tmp_path, READING)))
    done = subprocess.run(
        command, cwd=tmp_path, input=said, capture_output=True, text=True, check=False
    )
    if said:
        assert (done.returncode, "2 steps observed" in done.stdout) == (0, True)
    else:
        assert done.returncode == 2
        assert "nobody can type under the probe" in done.stdout
