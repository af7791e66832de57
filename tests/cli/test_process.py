"""``trainlint`` as a process: its ends, its imports, its children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.command_line import concise, run_python, run_trainlint, with_demo_rules

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes")

_IMPORTED = """
import sys
from trainlint.__main__ import main
sys.argv = ["trainlint", *sys.argv[1:]]
try:
    main()
finally:
    unwanted = {"torch", "libcst", "rich", "trainlint.analysis", "multiprocessing"}
    print(sorted(unwanted.intersection(sys.modules)), file=sys.stderr)
"""

PADDING = "# " + "x" * 78 + "\n"


def imported(cwd: Path, *arguments: str) -> str:
    ended = run_python("-c", _IMPORTED, *arguments, cwd=cwd)
    return ended.stderr.splitlines()[-1]


def test_version(tmp_path: Path) -> None:
    ended = run_trainlint("--version", cwd=tmp_path)
    assert (ended.code, ended.stdout.split()[0]) == (0, "trainlint")
    assert imported(tmp_path, "--version") == "[]"


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("chek", "no such command: 'chek'; did you mean 'check'?"),
        ("train.py", "no such command: 'train.py'; to check it: trainlint check train.py"),
        ("zzz", "no such command: 'zzz'; the commands are check, probe, recipe, rule"),
    ],
)
def test_an_unknown_command_is_2_and_the_nearest_is_named(
    tmp_path: Path, typed: str, answer: str
) -> None:
    (tmp_path / "train.py").write_text("")
    ended = run_trainlint(typed, cwd=tmp_path)
    assert (ended.code, ended.stderr) == (2, f"Error: {answer}\n")


def test_a_cached_answer_imports_neither_analysis_nor_libcst_nor_rich(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("faulty()\n")
    (tmp_path / "b.py").write_text("import torch\n")
    arguments = ("check", "--output-format", "concise")
    imported(tmp_path, *arguments)
    assert imported(tmp_path, *arguments) == "[]"


def test_a_check_never_imports_torch_or_libcst(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nfaulty()\n")
    assert imported(tmp_path, "check", "--no-cache", "--no-scout") == "['trainlint.analysis']"


@posix_only
def test_a_worker_that_crashes_costs_one_file(tmp_path: Path) -> None:
    for number in range(12):
        call = "crash()" if number in (3, 7) else "faulty()"
        (tmp_path / f"f{number:02}.py").write_text(f"{call}\n" + PADDING * 500)
    ended = run_trainlint(
        "check", "--select", "ALL", "--output-format", "concise", "--jobs", "2", cwd=tmp_path
    )
    assert ended.code == 2
    assert len(concise(ended)) == 10 + 2
    for name in ("f03.py", "f07.py"):
        assert f"error: {name}: trainlint crashed on this file (SIGKILL)" in ended.stdout
    assert "This is a mistake in trainlint" in ended.stderr


def test_several_processes_find_what_one_finds(tmp_path: Path) -> None:
    for number in range(12):
        text = f"faulty()\n{PADDING * 100 * number}doubtful()\nmistake()\n"
        (tmp_path / f"f{number:02}.py").write_text(text)
    (tmp_path / "broken.py").write_text("faulty(\n" + PADDING * 1000)
    arguments = ("check", "--select", "DEM", "--no-cache", "--output-format", "json")
    several = run_trainlint(*arguments, "--jobs", "3", cwd=tmp_path)
    for one in (["--jobs", "1"], ["--jobs", "1", "--no-scout"]):
        assert run_trainlint(*arguments, *one, cwd=tmp_path) == several
    assert several.stdout.count("DEM101") == 12


def test_fixing_in_several_processes(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"f{number}.py").write_text("faulty()\n" + PADDING * 1000)
    ended = run_trainlint("check", "--fix", "--jobs", "2", cwd=tmp_path)
    assert ended.code == 0
    assert all(path.read_text().startswith("right()\n") for path in tmp_path.glob("*.py"))


@posix_only
def test_control_c_ends_all_processes_without_a_traceback(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    (tmp_path / "patient.py").write_text(
        "import sys, time\n"
        "from pathlib import Path\n"
        "from trainlint.file_check import FileChecker\n"
        "def check(self, task):\n"
        f"    Path({str(ready)!r}).touch()\n"
        "    time.sleep(60)\n"
        "FileChecker.check = check\n"
        "from trainlint.__main__ import main\n"
        "main()\n"
    )
    sources = tmp_path / "sources"
    sources.mkdir()
    for number in range(4):
        (sources / f"f{number}.py").write_text("faulty()\n" + PADDING * 2000)
    process = subprocess.Popen(
        [sys.executable, "patient.py", "check", "--no-cache", "sources"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=with_demo_rules(),
        start_new_session=True,
        # A test run in the background of a shell would hand down that it ignores Ctrl-C.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),
    )
    while not ready.exists() and process.poll() is None:
        pass
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout, stderr.strip()) == (130, b"", b"interrupted")
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@posix_only
def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("faulty()\n" * 800)
    process = subprocess.Popen(
        [sys.executable, "-m", "trainlint", "check", "--no-cache"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=with_demo_rules(),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 1


def test_a_fault_of_ours_says_so_and_how_to_report_it(tmp_path: Path) -> None:
    script = (
        "import sys, trainlint.cli.check_run as module\n"
        "def run_check(arguments): raise KeyError('lost')\n"
        "module.run_check = run_check\n"
        "sys.argv = ['trainlint', 'check']\n"
        "from trainlint.__main__ import main\n"
        "main()\n"
    )
    ended = run_python("-c", script, cwd=tmp_path)
    assert ended.code == 2
    assert "Traceback" in ended.stderr
    assert "trainlint failed: KeyError: 'lost'" in ended.stderr
    assert "This is a mistake in trainlint, not in your code. Please report it" in ended.stderr


def test_output_survives_a_terminal_that_cannot_show_it(tmp_path: Path) -> None:
    (tmp_path / "größe.py").write_text("faulty()\n")
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = run_trainlint("check", cwd=tmp_path, environment=environment)
    assert ended.code == 1
    assert "e.py:1:1" in ended.stdout


def test_probe_without_torch_says_what_to_install(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'trainlint.runtime.command':\n"
        "            raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "sys.argv = ['trainlint', 'probe', 'train.py', '--lr', '1']\n"
        "from trainlint.__main__ import main\n"
        "main()\n"
    )
    ended = run_python("-c", script, cwd=tmp_path)
    assert ended.code == 2
    assert ended.stderr.count("\n") == 1
    assert "pip install 'trainlint[probe]'" in ended.stderr
