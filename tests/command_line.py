"""Runs ``trainlint`` as users do, with the demo rules of ``tests/third_party`` installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

THIRD_PARTY = Path(__file__).parent / "third_party"


@dataclass(frozen=True)
class Ended:
    """How a run ended."""

    code: int
    stdout: str
    stderr: str


def run_trainlint(
    *arguments: str | Path,
    cwd: Path,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run ``trainlint`` in a process of its own. ``PYTHONPATH`` is how the demo rules are found."""
    return run_python("-m", "trainlint", *arguments, cwd=cwd, stdin=stdin, environment=environment)


def run_python(
    *arguments: str | Path,
    cwd: Path,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run this interpreter with the demo rules installed."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        env={**with_demo_rules(), **(environment or {})},
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def with_demo_rules() -> dict[str, str]:
    """The environment in which the demo rules are installed."""
    search_path = os.pathsep.join([str(THIRD_PARTY), os.environ.get("PYTHONPATH", "")])
    kept = {key: value for key, value in os.environ.items() if key != "FORCE_COLOR"}
    return {**kept, "PYTHONPATH": search_path}


def concise(ended: Ended) -> list[str]:
    """The lines of concise output, each up to the rule's name, without the summary."""
    lines = [line for line in ended.stdout.splitlines() if ".py:" in line or ".ipynb:" in line]
    return [" ".join(word for word in line.split()[:2]) for line in lines]
