"""What the parent asks of one child run: plain data, handed over as a JSON file."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path


@dataclass
class ChildSpec:
    """One run of the script.

    ``phase`` is ``observe``, ``fixed`` (one batch again and again), ``zeroed`` (the same with its
    inputs zeroed) or ``replay`` (the first non-finite operation is named). ``process`` numbers the
    processes that the script starts itself; ``job`` tells one run of all ranks from another in the
    same folder. What is not younger than ``started``, which is set at :meth:`write` by the clock of
    the file system, is the user's. ``has_input`` says that there is something on standard input.
    """

    target: str
    module: bool
    args: list[str]
    folder: str
    phase: str = "observe"
    steps: int = 10
    lap_steps: int = 3
    budget: float = 120.0
    keep_compile: bool = False
    extra: bool = True
    loader: int | None = None
    replay_from: int = 0
    sandbox: bool = True
    rank: int = 0
    world: int = 1
    process: int = 0
    job: int = 0
    has_input: bool = False
    started: float = 0.0

    @property
    def run_folder(self) -> Path:
        """The folder that holds everything this probe writes."""
        return Path(self.folder)

    @property
    def suffix(self) -> str:
        """What tells this process's files from those of other phases, processes and ranks."""
        process = f".p{self.process}" if self.process else ""
        return f"{self.phase}{process}.{self.rank}"

    @property
    def trace_path(self) -> Path:
        """Where the child leaves its trace."""
        return self.run_folder / f"trace.{self.suffix}.json"

    @property
    def progress_path(self) -> Path:
        """Where the child, or a process that it started, says how far it is."""
        return self.run_folder / f"progress.{self.phase}.{self.rank}.txt"

    @property
    def log_path(self) -> Path:
        """Where the script's own output goes."""
        return self.run_folder / f"output.{self.suffix}.log"

    @property
    def journal_path(self) -> Path:
        """Where the child lists the files and folders that the script creates."""
        return self.run_folder / f"new.{self.suffix}.jsonl"

    @property
    def moves_path(self) -> Path:
        """What all processes and ranks of this run know of redirected files."""
        return self.run_folder / f"moved.{self.phase}.{self.job}.jsonl"

    @property
    def input_path(self) -> Path:
        """What the script can read from its standard input."""
        return self.run_folder / f"input.{self.rank}"

    def followed(self) -> list[ChildSpec]:
        """The processes that the script started and that have left a trace, in their order."""
        traces = self.run_folder.glob(f"trace.{self.phase}.p*.{self.rank}.json")
        numbers = sorted(int(path.name.split(".")[2][1:]) for path in traces)
        return [dataclasses.replace(self, process=number) for number in numbers]

    def write(self) -> Path:
        """Save the request and return its path."""
        path = self.run_folder / f"spec.{self.suffix}.json"
        if not self.started:
            path.write_text("not ready")
            self.started = path.stat().st_ctime
        path.write_text(json.dumps(dataclasses.asdict(self)))
        return path

    @staticmethod
    def read(path: str) -> ChildSpec:
        """Load a request that :meth:`write` saved."""
        return ChildSpec(**json.loads(Path(path).read_text()))
