"""The parent: which phases to run, one child after another, within the budget."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from trainlint.runtime.evidence import BROKEN, Evidence
from trainlint.runtime.launch.processes import (
    Nursery,
    read_trace,
    run_child,
    signals_as_interrupt,
)
from trainlint.runtime.launch.script_input import keep_input
from trainlint.runtime.launch.spec import ChildSpec
from trainlint.runtime.sandbox.redirects import tidy
from trainlint.runtime.trace import Trace, from_json, to_json

# Steps of the fixed-batch phase, and of its control run with zeroed inputs.
FIXED_STEPS = 30
# How long rank 0 waits for the traces of the others after its own is done.
RANK_PATIENCE_SECONDS = 30.0

# Phase, what the child said of its progress (step, total, loss).
Progress = Callable[[str, str], None]


@dataclass
class ProbeSettings:
    """What the user asked for."""

    target: str
    args: list[str] = field(default_factory=list)
    module: bool = False
    steps: int = 10
    budget: float = 120.0
    timeout: float = 120.0
    fixed: bool = True
    extra: bool = True
    replay: bool = True
    keep_compile: bool = False
    show_output: bool = False
    folder: str | None = None

    @property
    def rank(self) -> int:
        """This process's rank under torchrun."""
        return int(os.environ.get("RANK", "0"))

    @property
    def world(self) -> int:
        """How many ranks torchrun started."""
        return int(os.environ.get("WORLD_SIZE", "1"))


def run_folder(settings: ProbeSettings) -> Path:
    """A new folder for this probe; ranks of one torchrun share theirs."""
    if settings.folder is not None:
        folder = Path(settings.folder).resolve()
    elif settings.world > 1:
        job = f"{os.environ.get('TORCHELASTIC_RUN_ID', 'none')}-{os.environ['MASTER_PORT']}"
        folder = Path(tempfile.gettempdir()) / f"trainlint-probe-{job}-{os.getppid()}"
    else:
        folder = Path(tempfile.mkdtemp(prefix="trainlint-probe-"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def forget_earlier_run(folder: Path, rank: int) -> None:
    """Remove what this rank of an earlier probe has left in the same folder."""
    for pattern in ("trace.*.{}.json", "new.*.{}.jsonl", "progress.*.{}.txt", "rank.{}.json"):
        for path in folder.glob(pattern.format(rank)):
            path.unlink()


class Launcher:
    """Runs the phases and collects the evidence.

    ``home`` is a nursery to share between probes; by default each has its own.
    """

    def __init__(
        self, settings: ProbeSettings, progress: Progress, home: Nursery | None = None
    ) -> None:
        self.settings = settings
        self._home = home
        self.progress = progress
        self.folder = run_folder(settings)
        forget_earlier_run(self.folder, settings.rank)
        self.evidence = Evidence(script=settings.target)
        self._started = time.monotonic()
        self._spec: ChildSpec | None = None
        self._has_input = False

    def run(self) -> Evidence:
        """Every phase that is wanted and possible."""
        evidence = self.evidence
        home = self._home
        try:
            with signals_as_interrupt():
                home = home or Nursery()
                self._phases(home)
        except KeyboardInterrupt:
            evidence.interrupted = True
            if evidence.observe is None and self._spec is not None:
                evidence.observe = read_trace(self._spec)
        finally:
            if home is not None and self._home is None:
                home.close()
            self._clear_away()
        evidence.seconds = time.monotonic() - self._started
        return evidence

    def _clear_away(self) -> None:
        """Remove the run's folder, unless the user named one or another rank may still write."""
        ranks = len(self.evidence.ranks)
        alone = self.settings.world == 1 or ranks == self.settings.world
        if self.settings.folder is None and self.settings.rank == 0 and alone:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _phases(self, home: Nursery) -> None:
        evidence, settings = self.evidence, self.settings
        if settings.world == 1:
            self._has_input = keep_input(self.folder / f"input.{settings.rank}")
        evidence.observe = self._child(home, "observe", settings.steps, lap_steps=3)
        if self._take_followed(evidence.observe):
            evidence.skipped["fixed batch"] = "the script trains in processes that it starts"
            return
        if settings.world > 1:
            self._exchange(evidence.observe)
            evidence.skipped["fixed batch"] = "the script runs on several ranks"
            return
        bad = first_bad_step(evidence.observe)
        if bad is not None and not settings.replay:
            evidence.skipped["replay"] = "it was switched off"
        elif bad is not None:
            evidence.replay = self._child(home, "replay", bad + 2, replay_from=max(0, bad - 1))
        reason = self._why_not_fixed()
        if reason:
            evidence.skipped["fixed batch"] = reason
            return
        loader = training_loader(evidence.observe)
        evidence.fixed = self._child(home, "fixed", FIXED_STEPS, loader=loader)
        evidence.zeroed = self._child(home, "zeroed", FIXED_STEPS, loader=loader)

    def _why_not_fixed(self) -> str:
        observe = self.evidence.observe
        if not self.settings.fixed:
            return "it was switched off"
        if observe is not None and observe.ending.kind in BROKEN:
            return f"the script {observe.ending.kind}"
        if observe is None or not observe.steps:
            return self.evidence.no_step
        if len({s.optimizer for s in observe.steps}) > 1:
            return "several optimizers make steps"
        if self._left() <= 0:
            return "the time budget was spent"
        return ""

    def _left(self) -> float:
        observe = self.evidence.observe
        startup = observe.startup if observe is not None else 0.0
        return self.settings.budget - (time.monotonic() - self._started - startup)

    def _child(
        self,
        home: Nursery,
        phase: str,
        steps: int,
        lap_steps: int = 0,
        loader: int | None = None,
        replay_from: int = 0,
    ) -> Trace:
        settings = self.settings
        spec = ChildSpec(
            target=settings.target if settings.module else os.path.abspath(settings.target),
            module=settings.module,
            args=settings.args,
            folder=str(self.folder),
            phase=phase,
            steps=steps,
            lap_steps=lap_steps,
            budget=max(5.0, self._left()),
            keep_compile=settings.keep_compile,
            extra=settings.extra and phase == "observe",
            loader=loader,
            replay_from=replay_from,
            rank=settings.rank,
            world=settings.world,
            job=os.getppid() if settings.world > 1 else os.getpid(),
            has_input=self._has_input,
        )
        self._spec = spec
        try:
            return run_child(
                home,
                spec,
                settings.timeout,
                lambda said: self.progress(phase, said),
                settings.show_output,
            )
        finally:
            for one in [spec, *spec.followed()]:
                tidy(one)

    def _take_followed(self, own: Trace) -> bool:
        """Judge the processes that the script started, if they train and it does not itself."""
        if own.steps or self._spec is None:
            return False
        training = [t for t in map(read_trace, self._spec.followed()) if t.steps]
        if not training:
            return False
        evidence = self.evidence
        evidence.observe = training[0]
        if own.ending.kind in BROKEN:
            evidence.observe.ending = own.ending
        if training[0].world > 1:
            evidence.ranks = sorted(training, key=lambda trace: trace.rank)
            evidence.observe = evidence.ranks[0]
        if len(training) > 1 and training[0].world == 1:
            note = f"{len(training)} processes of the script train; this is the first of them"
            evidence.observe.notes.append(note)
        return True

    def _exchange(self, own: Trace) -> None:
        """Leave this rank's trace for rank 0, which reads all of them."""
        settings = self.settings
        (self.folder / f"rank.{settings.rank}.part").write_text(to_json(own))
        done = self.folder / f"rank.{settings.rank}.json"
        (self.folder / f"rank.{settings.rank}.part").rename(done)
        if settings.rank != 0:
            return
        until = time.monotonic() + RANK_PATIENCE_SECONDS
        wanted = [self.folder / f"rank.{rank}.json" for rank in range(settings.world)]
        while time.monotonic() < until and not all(path.exists() for path in wanted):
            time.sleep(0.1)
        self.evidence.ranks = [from_json(p.read_text()) for p in wanted if p.exists()]


def first_bad_step(trace: Trace) -> int | None:
    """The first step whose loss or gradients were not finite."""
    for index, step in enumerate(trace.steps):
        if step.nonfinite_grads or (step.loss is not None and step.loss - step.loss != 0):
            return index
    return None


def training_loader(trace: Trace) -> int | None:
    """The loader whose batches were trained on."""
    for one in trace.passes:
        if one.backwards:
            return one.loader
    return None
