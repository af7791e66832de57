"""Static findings beside the run: confirmed, cleared, or not reached."""

from __future__ import annotations

import ast
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainlint.runtime.evidence import Evidence
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


def compare(target: str, module: bool, evidence: Evidence, verdict: Verdict) -> list[StaticFinding]:
    """Check the script and its local imports, and set each finding against the run.

    Raises :class:`CheckFailedError` where the rules could not be run.
    """
    script = _file_of(target) if module else Path(target)
    if script is None or not script.exists():
        raise CheckFailedError(f"the source of {target} was not found")
    files = [str(path) for path in sorted(local_files(script))]
    command = [sys.executable, "-m", "trainlint", "check", "--no-cache", "--output-format", "json"]
    try:
        done = subprocess.run(
            [*command, *files], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise CheckFailedError(f"the rules took longer than {TIMEOUT_SECONDS} s") from late
    if not done.stdout.startswith("{"):
        raise CheckFailedError((done.stderr.strip().splitlines() or ["no output"])[-1])
    found = json.loads(done.stdout)["findings"]
    reached = set(_functions_reached(evidence))
    return [
        StaticFinding(f["rule"], f["path"], f["line"], f["message"], _state(f, verdict, reached))
        for f in found
    ]


def _state(found: dict[str, Any], verdict: Verdict, reached: set[tuple[str, str]]) -> str:
    """Seen in the run; looked for there and not seen; or not looked at.

    A run clears only functions in which it saw something of the training.
    """
    file = os.path.realpath(found["path"])
    same = [f.place for f in verdict.findings if f.rule == found["rule"]]
    if any(place is None or os.path.realpath(place.file) == file for place in same):
        return "confirmed"
    here = (file, enclosing_function(Path(file), found["line"]))
    return "cleared" if found["rule"] in verdict.passed and here in reached else "not reached"


def _functions_reached(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """File and name of each function in which an instrument saw something."""
    trace = evidence.trace
    seen: list[list[Any]] = [trace.events, trace.steps, trace.calls, trace.losses, trace.passes]
    for one in itertools.chain(*seen, trace.backwards):
        if one.place is not None:
            yield os.path.realpath(one.place.file), one.place.function


def enclosing_function(path: Path, line: int) -> str:
    """The name of the innermost function around a line, as a code object has it."""
    name, start = "<module>", 0
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if start < node.lineno <= line <= (node.end_lineno or node.lineno):
            name, start = node.name, node.lineno
    return name


class CheckFailedError(Exception):
    """The static rules could not be run."""


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
