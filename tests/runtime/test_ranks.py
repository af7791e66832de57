"""Two gloo ranks: a clean program, and faults that only ranks can show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scripts import PROGRAMS, free_port, write

pytestmark = pytest.mark.slow
CLEAN = (PROGRAMS / "ddp.py").read_text()
FAULTS = {
    "ddp-bypass-forward": ("F.cross_entropy(model(x), y)", "F.cross_entropy(model.module(x), y)"),
    "ranks-diverge": (
        "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n",
        "        if dist.get_rank() == 0:\n"
        "            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)\n",
    ),
    "ddp-not-wrapped": ("model = DistributedDataParallel(model)\n", ""),
    "ranks-same-data": ("batch_size=8, sampler=sampler", "batch_size=8"),
    "sampler-set-epoch-missing": ("    sampler.set_epoch(epoch)\n", ""),
}
CRASH = (
    "        optimizer.step()\n",
    "        optimizer.step()\n"
    "        if dist.get_rank() == 1:\n"
    "            raise ValueError('a bad file')\n",
)
Reports = dict[str, dict[str, Any]]


def _start(rank: int, arguments: list[str]) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "MASTER_ADDR": "127.0.0.1",
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": "2",
    }
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("one_rank.py")), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """The report of each program, from rank 0."""
    programs = {"clean": CLEAN, "crash": CLEAN.replace(*CRASH)}
    programs |= {rule: CLEAN.replace(old, new) for rule, (old, new) in FAULTS.items()}
    assert len(set(programs.values())) == len(programs)
    arguments = []
    for name, text in programs.items():
        folder = tmp_path_factory.mktemp(name)
        arguments += [free_port(), str(write(folder, text))]
    ranks = [_start(rank, arguments) for rank in (0, 1)]
    output = [rank.communicate(timeout=600)[0] for rank in ranks]
    lines = [json.loads(line) for line in output[0].splitlines()]
    return dict(zip(programs, lines, strict=True))


def test_clean_ranks(reports: Reports) -> None:
    report = reports["clean"]
    assert report["ending"]["kind"] == "stopped"
    assert [f for f in report["findings"] if f["level"] == "fail"] == []
    assert {"ranks-diverge", "ranks-same-data"} <= set(report["passed"])


@pytest.mark.parametrize("rule", FAULTS)
def test_faults_of_ranks(reports: Reports, rule: str) -> None:
    assert rule in {f["rule"] for f in reports[rule]["findings"]}


def test_the_rank_that_broke_first_is_named(reports: Reports) -> None:
    report = reports["crash"]
    assert report["ending"] == {"kind": "crashed", "detail": "ValueError: a bad file"}
    assert report["verdict"] == "unfinished"


@pytest.mark.parametrize("rule", ["", "ranks-diverge"])
def test_torchrun(rule: str, tmp_path: Path) -> None:
    """The report comes out once, whatever the exit codes do to torchrun."""
    script = write(tmp_path, CLEAN.replace(*FAULTS[rule]) if rule else CLEAN)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    torchrun += ["--master-port", "0", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    done = subprocess.run(
        [*torchrun, "-m", "trainlint", "probe", "--steps", "6", str(script)],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout.count("steps observed") == 1, done.stderr
    assert (done.returncode == 0) == (rule == "")
    assert rule in done.stdout
