"""How a script can end, and that nothing of the user's is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scripts import LOOP, PROGRAMS, probe_command, probe_json, run_probe, write

pytestmark = pytest.mark.slow
FAST = ("--no-fixed-batch", "--steps", "4")


def test_a_script_that_ends_by_itself(tmp_path: Path) -> None:
    script = write(tmp_path, LOOP + "step(); step()\n")
    code, report = probe_json(tmp_path, *FAST, str(script))
    assert code == 0
    assert report["phases"]["observe"]["steps"] == 2


def test_a_script_that_never_steps(tmp_path: Path) -> None:
    code, report = probe_json(tmp_path, *FAST, str(write(tmp_path, "print('hello')\n")))
    assert code == 0
    assert any("no optimizer step" in n["reason"] for n in report["not_checked"])


def test_a_crash_shows_the_users_traceback(tmp_path: Path) -> None:
    script = write(tmp_path, LOOP + "step()\nraise ValueError('my own')\n")
    done = run_probe(tmp_path, *FAST, str(script))
    assert done.returncode == 2
    assert "ValueError: my own" in done.stdout
    assert "runpy" not in done.stdout


@pytest.mark.parametrize("ending", ["sys.exit(3)", "os._exit(3)"])
def test_exits_without_steps(tmp_path: Path, ending: str) -> None:
    script = write(tmp_path, f"import os, sys, torch\n{ending}\n")
    code, report = probe_json(tmp_path, *FAST, str(script))
    assert code == 2
    assert "exit" in report["ending"]["kind"]


def test_os_exit_keeps_what_was_seen(tmp_path: Path) -> None:
    script = write(tmp_path, LOOP + "step(); step(); step()\nimport os; os._exit(0)\n")
    _, report = probe_json(tmp_path, *FAST, str(script))
    assert report["phases"]["observe"]["steps"] == 3


def test_a_hang_is_ended(tmp_path: Path) -> None:
    script = write(tmp_path, LOOP + "step()\nimport time; time.sleep(1000)\n")
    code, report = probe_json(tmp_path, *FAST, "--timeout", "5", str(script))
    assert code == 2
    assert report["ending"]["kind"] in ("hung", "interrupted")


def test_a_script_that_catches_everything(tmp_path: Path) -> None:
    text = LOOP + "while True:\n    try:\n        step()\n    except BaseException:\n        pass\n"
    code, report = probe_json(tmp_path, *FAST, str(write(tmp_path, text)))
    assert code == 0
    assert report["ending"]["kind"] == "stopped"


def test_arguments_path_and_main_are_as_python_sets_them(tmp_path: Path) -> None:
    write(tmp_path, "value = 7\n", "beside.py")
    text = "import sys, beside\nprint(sys.argv[1:], __name__, __file__ == sys.argv[0])\n"
    folder = tmp_path / "kept"
    args = ("--folder", str(folder), *FAST, str(write(tmp_path, text)), "--", "--epochs", "9")
    run_probe(tmp_path, *args)
    output = (folder / "output.observe.0.log").read_text()
    assert output.strip() == "['--epochs', '9'] __main__ True"


def test_modules_run_too(tmp_path: Path) -> None:
    package = tmp_path / "mine"
    package.mkdir()
    write(package, "", "__init__.py")
    write(package, "from . import helper\n" + LOOP + "for _ in range(9): step()\n", "train.py")
    write(package, "", "helper.py")
    code, report = probe_json(tmp_path, *FAST, "-m", "mine.train")
    assert code == 0
    assert report["phases"]["observe"]["steps"] >= 4


def test_existing_files_stay_as_they_were(tmp_path: Path) -> None:
    for name in ("model.pt", "log.txt", "notes.txt"):
        (tmp_path / name).write_text("precious")
    text = LOOP + (
        "import os\n"
        "step()\n"
        "torch.save(model.state_dict(), 'model.pt')\n"
        "torch.save(model.state_dict(), 'new.pt')\n"
        "assert os.path.exists('new.pt') and len(torch.load('new.pt')) == 4\n"
        "open('log.txt', 'w').write('gone')\n"
        "assert open('log.txt').read() == 'gone'\n"
        "with open('notes.txt', 'a') as f: f.write('!')\n"
        "assert open('notes.txt').read() == 'precious!'\n"
        "open('fresh.txt', 'w').write('new')\n"
        "for _ in range(20): step()\n"
    )
    code, report = probe_json(tmp_path, *FAST, str(write(tmp_path, text)))
    assert (code, report["ending"]["kind"]) == (0, "stopped")
    for name in ("model.pt", "log.txt", "notes.txt"):
        assert (tmp_path / name).read_text() == "precious"
    assert not (tmp_path / "new.pt").exists()
    assert [Path(p).name for p in report["files"]["created"]] == ["fresh.txt"]


def test_ctrl_c_leaves_no_orphans(tmp_path: Path) -> None:
    text = LOOP + "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(1000)\n"
    script = write(tmp_path, text)
    process = subprocess.Popen(probe_command(str(script)), cwd=tmp_path, stdout=subprocess.PIPE)
    until = time.monotonic() + 120
    while not (tmp_path / "pid").exists() and time.monotonic() < until:
        time.sleep(0.2)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 2
    child = int((tmp_path / "pid").read_text())
    time.sleep(0.5)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_losses_are_bit_identical(tmp_path: Path) -> None:
    program = PROGRAMS / "mlp.py"
    plain = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "plain.pt")],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    folder = tmp_path / "kept"
    args = ("--folder", str(folder), "--no-fixed-batch", "--steps", "12", str(program))
    run_probe(tmp_path, *args)
    probed = (folder / "output.observe.0.log").read_text().splitlines()
    expected = [line for line in plain.stdout.splitlines() if line.startswith("loss")][:12]
    assert [line for line in probed if line.startswith("loss")][:12] == expected


def test_a_missing_script_is_one_line(tmp_path: Path) -> None:
    done = run_probe(tmp_path, "nothing.py")
    assert done.returncode in (1, 2)
    assert done.stderr.strip().splitlines() == ["Error: no such script: nothing.py"]


def test_scripted_and_compiled_models_run(tmp_path: Path) -> None:
    text = (
        LOOP.replace("optimizer =", "model = torch.compile(torch.jit.script(model))\noptimizer =")
        + "for _ in range(20): step()\n"
    )
    code, report = probe_json(tmp_path, *FAST, str(write(tmp_path, text)))
    assert (code, report["instrument_errors"]) == (0, [])


LBFGS = """
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
def closure():
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    return loss
for _ in range(20): optimizer.step(closure)
"""

CHECKPOINTED = """
from torch.utils.checkpoint import checkpoint
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.ReLU())
        self.head = nn.Linear(8, 3)
    def forward(self, x):
        return self.head(checkpoint(self.body, x, use_reentrant=False))
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20): step()
"""

OWN_OPTIMIZER = """
class Own(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)
optimizer = Own(model.parameters(), lr=0.1)
for _ in range(20): step()
"""

SKIPPED = """
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)
for i in range(30):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""

BY_HAND = """
del optimizer
for _ in range(20):
    loss = nn.functional.cross_entropy(model(x), y)
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-0.1)
"""


@pytest.mark.parametrize(
    "loop", [LBFGS, CHECKPOINTED, OWN_OPTIMIZER, SKIPPED, BY_HAND], ids=lambda t: t.split()[0]
)
def test_unusual_but_right_programs_have_no_fail(loop: str, tmp_path: Path) -> None:
    code, report = probe_json(tmp_path, *FAST, str(write(tmp_path, LOOP + loop)))
    assert [f for f in report["findings"] if f["level"] == "fail"] == []
    assert (code, report["instrument_errors"]) == (0, [])
