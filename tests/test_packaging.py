"""What is installed: the top-level folders below ``trainlint``, and rules of other packages."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OFFLINE = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet")

RULE = '''
from trainlint.finding import Severity
from trainlint.rule import Rule
from trainlint.scout import identifier


class SeedMissing(Rule):
    """A script never sets a seed."""

    code = "ACM001"
    severity = Severity.WARNING
    scout = identifier("DataLoader")
    help = "call `torch.manual_seed`"

    def check(self, file):
        if not list(file.calls("torch.manual_seed")):
            for call in file.calls("torch.utils.data.DataLoader"):
                yield self.report(call, "no seed is set")
'''
PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "acme-rules"
version = "1.0"

[project.entry-points."trainlint.rules"]
acme = "acme_rules"

[tool.setuptools]
packages = ["acme_rules"]
"""


def pip(*arguments: str | Path) -> None:
    """Run pip of this environment; its output is the test's failure."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", *map(str, arguments)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this checkout, built without network from a copy."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, tracked.stdout.decode().split("\0")):
        if not name.startswith("tests/") and (ROOT / name).is_file():
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    pip("wheel", *OFFLINE, "--wheel-dir", folder, source)
    return next(folder.glob("trainlint-*.whl"))


def test_wheel_holds_the_four_folders_below_one_name(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    top_level = {name.partition("/")[0] for name in names if ".dist-info" not in name}
    assert top_level == {"trainlint"}
    assert "trainlint/rules/gradients/zero_grad_missing.py" in names
    assert "trainlint/runtime/__init__.py" in names
    assert "trainlint/reference_trainers/__init__.py" in names
    assert "trainlint/py.typed" in names
    assert not [name for name in names if "__pycache__" in name]


def test_wheel_holds_every_python_file_of_the_folders(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    homes = {
        "trainlint": "trainlint",
        "rules": "trainlint/rules",
        "runtime": "trainlint/runtime",
        "reference_trainers": "trainlint/reference_trainers",
    }
    for folder, home in homes.items():
        for path in (ROOT / folder).rglob("*.py"):
            assert f"{home}/{path.relative_to(ROOT / folder).as_posix()}" in names


def test_recipes_are_read_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    done = subprocess.run(
        [sys.executable, "-m", "trainlint", "recipe", "copy", "resnet"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site"), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    shipped = tmp_path / "site" / "trainlint" / "reference_trainers" / "vision" / "resnet.py"
    assert (tmp_path / "resnet.py").read_bytes() == shipped.read_bytes()


def test_rules_of_an_installed_package_run_beside_ours(tmp_path: Path) -> None:
    package = tmp_path / "acme-rules"
    (package / "acme_rules").mkdir(parents=True)
    (package / "pyproject.toml").write_text(PROJECT)
    (package / "acme_rules" / "__init__.py").write_text('"""Rules of a company."""\n')
    (package / "acme_rules" / "seed_missing.py").write_text(RULE)
    installed = tmp_path / "site"
    pip("install", *OFFLINE, "--target", installed, package)
    script = tmp_path / "train.py"
    script.write_text("from torch.utils.data import DataLoader\nloader = DataLoader([1])\n")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "trainlint",
            "check",
            "--no-cache",
            "--output-format=concise",
            script,
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(installed), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 1, done.stderr
    assert "train.py:2:10: ACM001 seed-missing" in done.stdout
