"""Static findings beside the run: confirmed, cleared, or not reached."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainlint.runtime.judge import Verdict

TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class StaticFinding:
    """One finding of ``trainlint check`` and what the run says about it."""

    rule: str
    path: str
    line: int
    message: str
    state: str


def compare(target: str, module: bool, verdict: Verdict) -> list[StaticFinding]:
    """Check the script and its local imports, and set each finding against the verdict."""
    script = _file_of(target) if module else Path(target)
    if script is None or not script.exists():
        return []
    files = [str(path) for path in sorted(local_files(script))]
    command = [sys.executable, "-m", "trainlint", "check", "--output-format", "json", "-e", *files]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )
    found = json.loads(done.stdout)["findings"] if done.stdout.startswith("{") else []
    return [
        StaticFinding(f["rule"], f["path"], f["line"], f["message"], _state(f["rule"], verdict))
        for f in found
    ]


def _state(rule: str, verdict: Verdict) -> str:
    """What the run says of a rule: seen, looked for and not seen, or not looked at."""
    if any(f.rule == rule for f in verdict.findings):
        return "confirmed"
    return "cleared" if rule in verdict.passed else "not reached"


def local_files(script: Path) -> set[Path]:
    """A script and the modules beside it that it imports, directly or through each other."""
    found: set[Path] = set()
    queue = [script.resolve()]
    while queue:
        path = queue.pop()
        if path in found:
            continue
        found.add(path)
        queue += [p for name in _imports(path) for p in _beside(name, script.resolve().parent)]
    return found


def _imports(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError, OSError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)


def _beside(name: str, folder: Path) -> list[Path]:
    base = folder.joinpath(*name.split("."))
    return [p for p in (base.with_suffix(".py"), base / "__init__.py") if p.is_file()]


def _file_of(module: str) -> Path | None:
    found = _beside(module, Path(os.getcwd())) + _beside(f"{module}.__main__", Path(os.getcwd()))
    return found[0] if found else None
