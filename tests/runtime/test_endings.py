"""How a script can end: each way gets a clear line, keeps what was seen, and leaves no process."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from scripts import LOOP, probe_command, probe_here, probe_json, write

pytestmark = pytest.mark.slow
FAST = ("--no-fixed-batch", "--steps", "4")
# Only a bound: a busy machine imports torch for minutes.
SECONDS = 600


def gone(pid: int) -> bool:
    """Whether a process has ended, or does so soon."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def wait_for(path: Path) -> None:
    """Return when a file exists."""
    until = time.monotonic() + SECONDS
    while not path.exists():
        assert time.monotonic() < until, f"{path.name} never came"
        time.sleep(0.05)


def test_a_script_that_ends_by_itself(tmp_path: Path) -> None:
    code, report = probe_json(tmp_path, *FAST, str(write(tmp_path, LOOP + "step(); step()\n")))
    assert (code, report["ending"]["kind"]) == (0, "finished")
    assert report["phases"]["observe"]["steps"] == 2


def test_a_script_that_never_steps(tmp_path: Path) -> None:
    code, report = probe_json(tmp_path, *FAST, str(write(tmp_path, "print('hello')\n")))
    assert (code, report["verdict"]) == (0, "nothing to judge")
    assert any("no optimizer step" in n["reason"] for n in report["not_checked"])


def test_a_crash_shows_the_users_traceback_only(tmp_path: Path) -> None:
    text = LOOP + "step(); step()\nloss = torch.utils.data.DataLoader([1])\nmodel(torch.ones(3))\n"
    done = probe_here(tmp_path, *FAST, str(write(tmp_path, text)))
    assert done.exit_code == 2
    assert done.stdout.startswith("the script did not finish: crashed: RuntimeError: mat1")
    assert "model(torch.ones(3))" in done.stdout
    assert "2 steps observed" in done.stdout
    assert "runpy" not in done.stdout
    assert "child.py" not in done.stdout


@pytest.mark.parametrize(
    ("end", "code"),
    [("sys.exit()", 0), ("sys.exit(3)", 2), ("sys.exit('no data')", 2), ("os._exit(3)", 2)],
)
def test_exits_without_steps(tmp_path: Path, end: str, code: int) -> None:
    found, report = probe_json(tmp_path, *FAST, str(write(tmp_path, f"import os, sys\n{end}\n")))
    assert found == code
    assert end in report["ending"]["detail"]


@pytest.mark.parametrize("end", ["sys.exit(0)", "os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_what_was_seen_is_kept(tmp_path: Path, end: str) -> None:
    script = write(tmp_path, LOOP + f"import os, sys\nstep(); step(); step()\n{end}\n")
    _, report = probe_json(tmp_path, *FAST, str(script))
    assert report["phases"]["observe"]["steps"] >= 1
    assert report["phases"]["observe"]["losses"][0] is not None


def test_a_killed_script_says_so(tmp_path: Path) -> None:
    text = LOOP + "step()\nimport os; os.kill(os.getpid(), 9)\n"
    done = probe_here(tmp_path, *FAST, str(write(tmp_path, text)))
    assert done.exit_code == 2
    assert "killed: by SIGKILL, most likely for using too much memory" in done.stdout


@pytest.mark.parametrize("greed", ["torch.ones(2**36)", "bytearray(2**38)"])
def test_out_of_memory(tmp_path: Path, greed: str) -> None:
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2**35, 2**35))\n"
    text = LOOP + limit + f"step(); step()\n{greed}\n"
    code, report = probe_json(tmp_path, *FAST, str(write(tmp_path, text)))
    assert code == 2
    assert report["ending"]["detail"].startswith("out of memory")
    assert report["phases"]["observe"]["steps"] == 2


def test_a_hang_is_ended_where_it_hangs(tmp_path: Path) -> None:
    script = write(tmp_path, LOOP + "step()\nimport time; time.sleep(1000)\n")
    done = probe_here(tmp_path, *FAST, "--timeout", "8", str(script))
    assert done.exit_code == 2
    assert "hung: no step for 8 s" in done.stdout
    assert "time.sleep(1000)" in done.stdout


def test_a_hang_that_ignores_signals_is_ended(tmp_path: Path) -> None:
    text = LOOP + (
        "import os, signal, time\n"
        "open('pid', 'w').write(str(os.getpid()))\n"
        "for s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, signal.SIG_IGN)\n"
        "step()\nwhile True: time.sleep(1)\n"
    )
    code, _ = probe_json(tmp_path, *FAST, "--timeout", "8", str(write(tmp_path, text)))
    assert code == 2
    assert gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("guard", ["except BaseException", "except"])
def test_a_script_that_catches_everything(tmp_path: Path, guard: str) -> None:
    text = LOOP + f"while True:\n    try:\n        step()\n    {guard}:\n        pass\n"
    code, report = probe_json(tmp_path, *FAST, str(write(tmp_path, text)))
    assert (code, report["ending"]["kind"]) == (0, "stopped")


def test_a_script_that_goes_on_after_the_stop(tmp_path: Path) -> None:
    text = (
        LOOP + "import time\ntry:\n    while True: step()\nexcept BaseException: time.sleep(1000)\n"
    )
    code, report = probe_json(tmp_path, *FAST, str(write(tmp_path, text)))
    assert (code, report["ending"]["kind"]) == (0, "stopped")


WAITING = (
    LOOP
    + """
import os, subprocess, time
phase = os.environ["TRAINLINT_PROBE"]
if phase == {phase!r}:
    helper = subprocess.Popen(["sleep", "1000"])
    step()
    os.system(f"echo {{os.getpid()}} {{helper.pid}} > {folder}/waiting")
    time.sleep(1000)
for _ in range(40): step()
"""
)


@pytest.mark.parametrize("phase", ["observe", "fixed", "zeroed"])
def test_ctrl_c_in_each_phase(tmp_path: Path, phase: str) -> None:
    signs = tmp_path / "signs"
    signs.mkdir()
    script = write(tmp_path, WAITING.format(phase=phase, folder=str(signs)))

    def press() -> None:
        wait_for(signs / "waiting")
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    code, report = probe_json(tmp_path, "--steps", "4", str(script))
    presser.join()
    assert code == 2
    assert report["phases"]["observe"]["steps"] >= 1
    assert all(gone(int(pid)) for pid in (signs / "waiting").read_text().split())


def test_ctrl_c_while_starting(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    command = probe_command("--folder", str(folder), str(write(tmp_path, LOOP)))
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    wait_for(folder)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    assert "interrupted" in output


def test_termination_ends_the_script_too(tmp_path: Path) -> None:
    signs = tmp_path / "signs"
    signs.mkdir()
    script = write(tmp_path, WAITING.format(phase="observe", folder=str(signs)))
    process = subprocess.Popen(probe_command(str(script)), cwd=tmp_path, stdout=subprocess.PIPE)
    wait_for(signs / "waiting")
    process.send_signal(signal.SIGTERM)
    assert process.wait(SECONDS) == 2
    assert all(gone(int(pid)) for pid in (signs / "waiting").read_text().split())


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    open('pid', 'w').write(str(os.getpid()))
    time.sleep(1000)
while not os.path.exists('pid') or not open('pid').read(): time.sleep(0.05)
for _ in range(20): step()
"""


def test_a_daemon_of_the_script_is_ended(tmp_path: Path) -> None:
    code, _ = probe_json(tmp_path, *FAST, str(write(tmp_path, LOOP + DAEMON)))
    assert code == 0
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_killed_probe_leaves_no_process(tmp_path: Path) -> None:
    signs = tmp_path / "signs"
    signs.mkdir()
    script = write(tmp_path, WAITING.format(phase="observe", folder=str(signs)))
    process = subprocess.Popen(probe_command(str(script)), cwd=tmp_path, stdout=subprocess.PIPE)
    wait_for(signs / "waiting")
    process.kill()
    process.wait(SECONDS)
    assert all(gone(int(pid)) for pid in (signs / "waiting").read_text().split())


ARGUMENTS = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument('--data', required=True)
parser.parse_args()
"""


def test_wrong_arguments_of_the_script_are_shown(tmp_path: Path) -> None:
    done = probe_here(tmp_path, str(write(tmp_path, ARGUMENTS)))
    assert done.exit_code == 2
    assert "the following arguments are required: --data" in done.stdout


@pytest.mark.parametrize("option", ["--html", "--folder"])
def test_a_place_that_cannot_be_written_is_one_line(option: str, tmp_path: Path) -> None:
    script = write(tmp_path, LOOP)
    done = probe_here(tmp_path, option, str(script / "inside"), str(script))
    assert done.exit_code == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.startswith("Error: cannot ")


def test_a_missing_script_is_one_line(tmp_path: Path) -> None:
    done = probe_here(tmp_path, "nothing.py")
    assert done.exit_code == 2
    assert done.stderr.strip().splitlines() == ["Error: no such script: nothing.py"]
