"""One program of the bench, run end to end through the command line, and what came of it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from scripts import PATIENCE, probe_here

RUN_SECONDS = 1800.0
_TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node")


@dataclass(frozen=True)
class Case:
    """A script and how it is called.

    ``rules`` are the names under which its fault may be found; a clean program has none.
    ``prepare`` fills a new folder; the script runs in that folder, or in ``inside`` of it.
    """

    name: str
    group: str
    script: str
    prepare: Callable[[Path], None]
    rules: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    ranks: int = 1
    inside: str = "."
    environment: tuple[tuple[str, str], ...] = ()


@dataclass
class Outcome:
    """What the probe said about one case; ``digest`` tells whether the program has changed."""

    name: str
    group: str
    digest: str
    rules: list[str]
    fails: list[str] = field(default_factory=list)
    warns: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ending: str = ""
    steps: int = 0
    seconds: float = 0.0
    problem: str = ""

    @property
    def named(self) -> list[str]:
        """Rules that were reported as a FAIL or a WARN."""
        return [*self.fails, *self.warns]

    @property
    def found(self) -> bool:
        """Whether the fault is named rightly."""
        return bool(set(self.named) & set(self.rules))

    @property
    def clean(self) -> bool:
        """Whether it ran, and nothing of it failed."""
        return not self.problem and not self.fails


def write_script(name: str, text: str, folder: Path) -> None:
    """A preparation for :class:`Case`, once its name and text are filled in."""
    (folder / name).write_text(text)


def digest(case: Case, folder: Path) -> str:
    """Tells the program, its stand-in data and how it is called apart from all others."""
    state = hashlib.blake2b(digest_size=8)
    state.update(repr((case.script, case.options, case.arguments, case.ranks)).encode())
    for path in sorted(folder.rglob("*.py")):
        state.update(path.read_bytes())
    return state.hexdigest()


def options(case: Case) -> list[str]:
    """What follows ``trainlint probe``."""
    return ["--output-format", "json", *PATIENCE, *case.options, case.script, "--", *case.arguments]


def run(case: Case, known: dict[str, Outcome], cold: bool) -> Outcome:
    """Run one case in a folder of its own; a program that ``known`` has by digest is not run.

    ``cold`` starts ``python -m trainlint`` anew for each program. Otherwise the same command is
    called in this process, and its children are forked from one process that has torch imported.
    """
    with tempfile.TemporaryDirectory(prefix="bench-probe-") as name:
        folder = Path(name)
        case.prepare(folder)
        outcome = Outcome(case.name, case.group, digest(case, folder), list(case.rules))
        before = known.get(outcome.digest)
        if before is not None:
            return replace(before, name=case.name, group=case.group, rules=list(case.rules))
        said = _start(case, folder) if cold or case.ranks > 1 else _call(case, folder)
        start = said.find("{")
        if start < 0:
            outcome.problem = said.strip().splitlines()[-1] if said.strip() else "no report"
        else:
            _read(json.loads(said[start:]), outcome)
        return outcome


def _environment(case: Case) -> dict[str, str]:
    given = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", **dict(case.environment)}
    return {**os.environ, **given}


def _start(case: Case, folder: Path) -> str:
    """What the command line prints, under torchrun where there are several ranks."""
    runner = [*_TORCHRUN, str(case.ranks)] if case.ranks > 1 else []
    done = subprocess.run(
        [sys.executable, *runner, "-m", "trainlint", "probe", *options(case)],
        cwd=folder / case.inside,
        env=_environment(case),
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    return done.stdout if "{" in done.stdout else done.stderr


def _call(case: Case, folder: Path) -> str:
    before = dict(os.environ)
    os.environ.update(_environment(case))
    try:
        done = probe_here(folder / case.inside, *options(case))
        return done.stdout or done.output
    finally:
        os.environ.clear()
        os.environ.update(before)


def _read(report: dict[str, Any], outcome: Outcome) -> None:
    for level, names in (
        ("fail", outcome.fails),
        ("warn", outcome.warns),
        ("note", outcome.notes),
    ):
        names += [f["rule"] for f in report["findings"] if f["level"] == level]
    ending = report["ending"]
    outcome.ending = f"{ending['kind']}: {ending['detail']}"
    outcome.seconds = report["seconds"]
    outcome.steps = report["phases"].get("observe", {}).get("steps", 0)
    if report["instrument_errors"]:
        outcome.problem = f"instrument: {report['instrument_errors'][0]}"
    elif not outcome.rules and ending["kind"] not in ("stopped", "finished"):
        outcome.problem = outcome.ending


def load(path: Path) -> dict[str, Outcome]:
    """The outcomes that an earlier run has left, by digest; the latest counts."""
    if not path.exists():
        return {}
    outcomes = [Outcome(**json.loads(line)) for line in path.read_text().splitlines()]
    return {outcome.digest: outcome for outcome in outcomes}


def save(path: Path, outcome: Outcome) -> None:
    """Append one outcome at once, so that a run can be broken off and taken up again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        stream.write(json.dumps(asdict(outcome)) + "\n")
