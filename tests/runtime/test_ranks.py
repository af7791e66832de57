"""Two gloo ranks under torchrun: a clean program, and faults that only ranks can show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scripts import PROGRAMS, write

pytestmark = pytest.mark.slow
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


def _run(folder: Path, script: Path) -> dict[str, Any]:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    torchrun += ["--master-port", "0", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    probe = ["-m", "trainlint.runtime", "--output-format", "json", str(script)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*torchrun, *probe],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert "{" in done.stdout, done.stderr
    return dict(json.loads(done.stdout[done.stdout.index("{") :]))


def test_clean_ranks(tmp_path: Path) -> None:
    report = _run(tmp_path, PROGRAMS / "ddp.py")
    assert [f for f in report["findings"] if f["level"] == "fail"] == []
    assert {"ranks-diverge", "ranks-same-data"} <= set(report["passed"])


@pytest.mark.parametrize("rule", FAULTS)
def test_faults_of_ranks(rule: str, tmp_path: Path) -> None:
    old, new = FAULTS[rule]
    text = (PROGRAMS / "ddp.py").read_text()
    assert old in text
    report = _run(tmp_path, write(tmp_path, text.replace(old, new)))
    assert rule in {f["rule"] for f in report["findings"]}
