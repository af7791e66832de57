"""Nothing of the user's is touched, and the script computes what it computes without the probe."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import LOOP, PROGRAMS, probe_here, probe_json, write

pytestmark = pytest.mark.slow
FAST = ("--no-fixed-batch", "--steps", "4")
MORE = "for _ in range(20): step()\n"


def snapshot(folder: Path) -> dict[str, tuple[bytes, float, int]]:
    """Every file below a folder: contents, time of change and mode."""
    return {
        str(path.relative_to(folder)): (
            path.read_bytes(),
            path.stat().st_mtime,
            path.stat().st_mode,
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def run_untouched(tmp_path: Path, text: str, *options: str) -> None:
    """Probe a script to its stop, and hold the folder equal before and after."""
    script = write(tmp_path, LOOP + text + MORE)
    before = snapshot(tmp_path)
    code, report = probe_json(tmp_path, *(options or FAST), str(script))
    assert (code, report["ending"]["kind"]) == (0, "stopped"), report["ending"]
    assert snapshot(tmp_path) == before


WRITES = """
import os, pathlib, shutil
step()
torch.save(model.state_dict(), 'model.pt')
torch.save(model.state_dict(), 'new.pt')
assert os.path.exists('new.pt') and len(torch.load('new.pt')) == 4
shutil.copyfile('new.pt', 'best.pt')
assert len(torch.load('best.pt')) == 4
shutil.copy2('new.pt', 'also.pt')
open('log.txt', 'w').write('gone')
assert open('log.txt').read() == 'gone'
with open('notes.txt', 'a') as f: f.write('!')
assert open('notes.txt').read() == 'precious!'
pathlib.Path('notes.txt').touch()
with open('log.txt', 'a', opener=lambda path, flags: os.open(path, flags)) as f: f.write('?')
assert open('log.txt').read() == 'gone?'
import tempfile
with tempfile.NamedTemporaryFile(dir='.') as f: assert os.path.isdir('.') and os.path.exists(f.name)
with tempfile.TemporaryFile(dir='.') as f: assert f.write(b'x') and os.path.isdir('.')
os.chmod('log.txt', 0o600)
os.truncate('table.csv', 0)
os.close(os.open('raw.bin', os.O_WRONLY | os.O_TRUNC))
open('results.txt', 'w').write('a result')
with open('once.txt', 'x') as f: f.write('only once')
torch.jit.save(torch.jit.script(model), 'scripted.pt')
"""

REMOVES = """
import os, pathlib, shutil
step()
os.remove('log.txt')
pathlib.Path('notes.txt').unlink()
shutil.rmtree('runs')
os.rename('table.csv', 'other.csv')
assert open('other.csv').read() == 'precious'
os.replace('raw.bin', 'model.pt')
"""

FOLDERS = """
import os
os.makedirs('out/checkpoints')
for epoch in range(2):
    step()
    os.makedirs(f'out/epoch{epoch}')
    torch.save(model.state_dict(), f'out/checkpoints/{epoch}.pt')
    open(f'out/epoch{epoch}/metrics.json', 'w').write('{}')
assert not os.path.isdir('nothing')
"""


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A folder with files of the user's."""
    (tmp_path / "runs").mkdir()
    for name in ("model.pt", "log.txt", "notes.txt", "table.csv", "raw.bin", "runs/old.txt"):
        (tmp_path / name).write_text("precious")
    return tmp_path


@pytest.mark.parametrize("text", [WRITES, REMOVES], ids=["writes", "removes"])
def test_existing_files_stay_as_they_were(precious: Path, text: str) -> None:
    run_untouched(precious, text)


def test_results_and_folders_of_the_script_are_tidied_away(tmp_path: Path) -> None:
    run_untouched(tmp_path, FOLDERS, "--steps", "4")
    assert not (tmp_path / "out").exists()


NAMED = """
import datetime, os
out = os.path.join('outputs', datetime.datetime.now().strftime('%H-%M-%S-%f'))
os.makedirs(out)
os.chdir(out)
open('settings.json', 'w').write('{}')
"""


def test_of_folders_named_after_the_run_one_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "temporary"
    runs.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(runs))
    _, report = probe_json(tmp_path, "--steps", "4", str(write(tmp_path, NAMED + LOOP + MORE)))
    assert report["phases"]["zeroed"]["steps"] == 20
    assert len(list((tmp_path / "outputs").iterdir())) == 1
    assert list(runs.iterdir()) == []


def test_what_the_script_prepares_is_kept_and_listed(tmp_path: Path) -> None:
    text = "open('cache.bin', 'w').write('prepared')\n" + LOOP + MORE
    code, report = probe_json(tmp_path, "--steps", "4", str(write(tmp_path, text)))
    assert (code, (tmp_path / "cache.bin").read_text()) == (0, "prepared")
    assert [Path(p).name for p in report["files"]["created"]] == ["cache.bin"]


TRACKERS = {
    "tensorboard": """
from torch.utils.tensorboard import SummaryWriter
writer = SummaryWriter()
writer.add_scalar("loss", step(), 0)
writer.close()
""",
    "safetensors": """
from safetensors.torch import load_file, save_file
step()
save_file(model.state_dict(), "model.safetensors")
assert len(load_file("model.safetensors")) == 4
""",
    "wandb": """
import wandb
wandb.init(project="mine", config={"lr": 0.1})
wandb.log({"loss": step()})
""",
    "mlflow": """
import mlflow
with mlflow.start_run():
    mlflow.log_metric("loss", step())
""",
}


@pytest.mark.parametrize("package", TRACKERS)
def test_trackers_leave_nothing(package: str, tmp_path: Path) -> None:
    pytest.importorskip(package)
    run_untouched(tmp_path, TRACKERS[package])


def test_arguments_path_and_main_are_as_python_sets_them(tmp_path: Path) -> None:
    write(tmp_path, "value = 7\n", "beside.py")
    text = "import sys, beside\nprint(sys.argv[1:], __name__, __file__ == sys.argv[0])\n"
    folder = tmp_path / "kept"
    args = ("--folder", str(folder), *FAST, str(write(tmp_path, text)), "--", "--epochs", "9")
    probe_here(tmp_path, *args)
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


def test_a_script_may_read_its_input(tmp_path: Path) -> None:
    code, _ = probe_json(tmp_path, *FAST, str(write(tmp_path, "import sys\nsys.stdin.read()\n")))
    assert code == 0


@pytest.mark.parametrize("base", ["mlp", "cnn", "gpt", "vae", "diffusion"])
def test_losses_are_bit_identical(base: str, tmp_path: Path) -> None:
    text = (PROGRAMS / f"{base}.py").read_text()
    say = r'\1print("loss", repr(loss.item()), flush=True)\n\1\2.backward()'
    program = write(tmp_path, re.sub(r"(?m)^( *)(.*loss.*)\.backward\(\)", say, text))
    plain = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    folder = tmp_path / "kept"
    probe_here(tmp_path, "--folder", str(folder), "--no-fixed-batch", "--steps", "8", str(program))
    probed = (folder / "output.observe.0.log").read_text().splitlines()
    expected = [line for line in plain.stdout.splitlines() if line.startswith("loss ")][:8]
    assert len(expected) == 8
    assert [line for line in probed if line.startswith("loss ")][:8] == expected
