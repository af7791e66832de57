"""Real pre-commit with our own hook definitions: fails on a bug, passes after the fix."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BUGGY = """import torch


def freeze(model: torch.nn.Module) -> None:
    for parameter in model.parameters():
        parameter.require_grad = False
"""


class Repository:
    """A small git repository whose pre-commit runs a hook of this checkout."""

    def __init__(self, folder: Path, hook: str) -> None:
        self.folder = folder
        scripts = Path(sys.executable).parent
        self.environment = {
            **os.environ,
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
            "PRE_COMMIT_HOME": str(folder.parent / "pre-commit-home"),
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
            self.environment.pop(name, None)
        hooks = folder.parent / "hooks"
        hooks.mkdir()
        (hooks / ".pre-commit-hooks.yaml").write_bytes(
            (ROOT / ".pre-commit-hooks.yaml").read_bytes()
        )
        revision = self._commit_all(hooks)
        folder.mkdir()
        # The hook's own environment would need a package index; the entry and the file types are
        # ours, the interpreter is the one that runs this test.
        (folder / ".pre-commit-config.yaml").write_text(
            f"repos:\n- repo: {hooks}\n  rev: {revision}\n  hooks:\n"
            f"  - id: {hook}\n    language: system\n"
        )
        self.git("init", "--quiet")

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        """Run git and give back what it printed."""
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        done = subprocess.run(
            ["git", *identity, *arguments],
            cwd=cwd or self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def run(self) -> subprocess.CompletedProcess[str]:
        """Stage everything and run pre-commit as the commit would."""
        self.git("add", "--all")
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", "run"],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
        )

    def _commit_all(self, folder: Path) -> str:
        self.git("init", "--quiet", cwd=folder)
        self.git("add", "--all", cwd=folder)
        self.git("commit", "--quiet", "--message", "hooks", cwd=folder)
        return self.git("rev-parse", "HEAD", cwd=folder)


@pytest.fixture
def repository(tmp_path: Path, request: pytest.FixtureRequest) -> Repository:
    return Repository(tmp_path / "repository", request.param)


@pytest.mark.parametrize("repository", ["trainlint"], indirect=True)
def test_hook_fails_on_a_bug_and_passes_once_it_is_gone(repository: Repository) -> None:
    script = repository.folder / "freeze.py"
    script.write_text(BUGGY)
    failed = repository.run()
    assert failed.returncode == 1
    assert "requires-grad-typo" in failed.stdout
    assert script.read_text() == BUGGY
    script.write_text(BUGGY.replace("require_grad", "requires_grad"))
    assert repository.run().returncode == 0


@pytest.mark.parametrize("repository", ["trainlint-fix"], indirect=True)
def test_fixing_hook_repairs_the_file_and_then_passes(repository: Repository) -> None:
    script = repository.folder / "freeze.py"
    script.write_text(BUGGY)
    assert repository.run().returncode == 1
    assert script.read_text() == BUGGY.replace("require_grad", "requires_grad")
    assert repository.run().returncode == 0


@pytest.mark.parametrize("repository", ["trainlint"], indirect=True)
def test_hook_passes_silently_without_staged_python(repository: Repository) -> None:
    (repository.folder / "notes.txt").write_text("no code here\n")
    passed = repository.run()
    assert passed.returncode == 0
    assert "Skipped" in passed.stdout
