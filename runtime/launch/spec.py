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
    inputs zeroed) or ``replay`` (the first non-finite operation is named).
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

    @property
    def run_folder(self) -> Path:
        """The folder that holds everything this probe writes."""
        return Path(self.folder)

    @property
    def suffix(self) -> str:
        """What tells this child's files from those of other phases and ranks."""
        return f"{self.phase}.{self.rank}"

    @property
    def trace_path(self) -> Path:
        """Where the child leaves its trace."""
        return self.run_folder / f"trace.{self.suffix}.json"

    @property
    def progress_path(self) -> Path:
        """Where the child says how far it is."""
        return self.run_folder / f"progress.{self.suffix}.txt"

    @property
    def log_path(self) -> Path:
        """Where the script's own output goes."""
        return self.run_folder / f"output.{self.suffix}.log"

    @property
    def journal_path(self) -> Path:
        """Where the child lists the files and folders that the script creates."""
        return self.run_folder / f"new.{self.suffix}.jsonl"

    def write(self) -> Path:
        """Save the request and return its path."""
        path = self.run_folder / f"spec.{self.suffix}.json"
        path.write_text(json.dumps(dataclasses.asdict(self)))
        return path

    @staticmethod
    def read(path: str) -> ChildSpec:
        """Load a request that :meth:`write` saved."""
        return ChildSpec(**json.loads(Path(path).read_text()))
