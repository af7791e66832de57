"""The live half of a trace: where in training we are, and when to stop."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from trainlint.runtime.launch.spec import ChildSpec
from trainlint.runtime.launch.stop import StopProbe
from trainlint.runtime.places import user_place
from trainlint.runtime.trace import Event, Place, Trace, to_json

F = TypeVar("F", bound=Callable[..., Any])

MOST_EVENTS = 4000
MOST_ERRORS = 20
# Micro-batches without any optimizer step after which the script is taken to never step.
MOST_BACKWARDS_WITHOUT_STEP = 400
# A script that swallows the stop this often is ended from outside.
MOST_SWALLOWED_STOPS = 3
# Writing the trace may cost at most this share of the run.
FLUSH_SHARE = 0.05


class Recorder:
    """Counts steps and laps, keeps the trace, and raises :class:`StopProbe` when done.

    Lap 0 is the first ``spec.steps`` steps, untouched. Lap 1 follows: training loaders are ended
    early, so that the script's own evaluation, checkpoint and second epoch come into view.
    """

    def __init__(self, spec: ChildSpec) -> None:
        self.spec = spec
        self.trace = Trace(phase=spec.phase, script=spec.target, rank=spec.rank, world=spec.world)
        self.step = 0
        self.lap = 0
        self.lap_start = 0
        self.backwards_since_step = 0
        self.stopping = ""
        self.swallowed = 0
        self.busy = False
        self.before_stop: list[Callable[[], None]] = []
        self.before_flush: list[Callable[[], None]] = []
        self.hard_exit: Callable[[], None] | None = None
        self.events_by_kind: dict[str, int] = {}
        self._pid = os.getpid()
        self._thread = threading.get_ident()
        self._started = time.monotonic()
        self._first_backward: float | None = None
        self._flushed = 0.0
        self._flush_cost = 0.0

    def active(self) -> bool:
        """Whether the caller is the training process's own thread, outside our own work."""
        return not self.busy and threading.get_ident() == self._thread and os.getpid() == self._pid

    def claim(self) -> None:
        """Follow the calling thread from now on, as long as nothing was trained in another one.

        Whoever builds an optimizer or runs a model first is taken to be the one that trains.
        """
        if self._first_backward is None and not self.busy and os.getpid() == self._pid:
            self._thread = threading.get_ident()

    @property
    def in_main_thread(self) -> bool:
        """Whether training runs where the script itself does."""
        return self._thread == threading.main_thread().ident

    def event(self, kind: str, subject: int | None = None, detail: str = "") -> Place | None:
        """Append to the protocol and return the user's line."""
        place = user_place()
        if kind == "backward" and self._first_backward is None:
            self._first_backward = time.monotonic()
            self.trace.startup = self._first_backward - self._started
        if len(self.trace.events) < MOST_EVENTS:
            self.trace.events.append(Event(kind, self.step, self.lap, subject, place, detail))
        self.events_by_kind[kind] = self.events_by_kind.get(kind, 0) + 1
        return place

    def count(self, kind: str) -> int:
        """How many events of a kind there were."""
        return self.events_by_kind.get(kind, 0)

    def error(self, where: str, problem: BaseException) -> None:
        """Note that an instrument failed; the run goes on."""
        text = f"{where}: {type(problem).__name__}: {problem}"
        known = self.trace.instrument_errors
        if text not in known and len(known) < MOST_ERRORS:
            known.append(text)

    def made_step(self, step: int) -> None:
        """The weights have moved for the ``step``-th time; enough of that begins lap 1."""
        self.backwards_since_step = 0
        self.step = max(self.step, step)
        if self.lap == 0 and self.step >= self.spec.steps:
            self.lap, self.lap_start = 1, self.step

    def out_of_time(self) -> bool:
        """Whether the phase's budget is spent; the script's own start-up does not count."""
        first = self._first_backward
        return first is not None and time.monotonic() - first > self.spec.budget

    def done(self) -> str:
        """Why the run should stop now; empty while it should not."""
        if self.stopping:
            return self.stopping
        if self.out_of_time():
            return f"the time budget of {self.spec.budget:.0f} s was spent"
        if self.lap == 1 and self.step - self.lap_start >= self.spec.lap_steps:
            return "all steps were seen"
        if self.backwards_since_step > MOST_BACKWARDS_WITHOUT_STEP:
            return f"{self.backwards_since_step} backward passes went by without an optimizer step"
        return ""

    def stop_if_done(self) -> None:
        """End the run from inside the user's call stack, if it is time."""
        reason = self.done()
        if not reason or not self.active():
            return
        if self.stopping:
            self._stop_again()
        self.stopping = reason
        self.busy = True
        try:
            for action in self.before_stop:
                self._try(action)
        finally:
            self.busy = False
        self.flush(force=True)
        raise StopProbe(reason)

    def _stop_again(self) -> None:
        self.swallowed += 1
        if self.swallowed >= MOST_SWALLOWED_STOPS and self.hard_exit is not None:
            self.hard_exit()
        raise StopProbe(self.stopping)

    def _try(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as problem:
            self.error(getattr(action, "__qualname__", "action"), problem)

    def progress(self, loss: float | None) -> None:
        """Tell the parent how far this phase is."""
        total = self.spec.steps + (self.spec.lap_steps if self.spec.phase == "observe" else 0)
        text = f"{self.step} {total} {'' if loss is None else format(loss, '.5g')}"
        try:
            self.spec.progress_path.write_text(text)
        except OSError as problem:
            self.error("progress", problem)

    def flush(self, force: bool = False) -> None:
        """Write the trace, seldom enough to be cheap."""
        now = time.monotonic()
        if not force and now - self._flushed < max(0.5, self._flush_cost / FLUSH_SHARE):
            return
        if os.getpid() != self._pid:
            return
        for action in self.before_flush:
            self._try(action)
        self.trace.seconds = now - self._started
        draft = self.spec.trace_path.with_suffix(".part")
        try:
            draft.write_text(to_json(self.trace))
            os.replace(draft, self.spec.trace_path)
        except OSError as problem:  # a full disk; an earlier trace may lie there
            self.error("trace", problem)
        self._flushed = time.monotonic()
        self._flush_cost = self._flushed - now


def guarded(method: F) -> F:
    """An instrument's method: skipped when it is not its turn, never fatal to the user's run.

    The owner must have a ``recorder``. While the method runs, other instruments are deaf.
    """

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder: Recorder = self.recorder
        if not recorder.active():
            return None
        recorder.busy = True
        try:
            return method(self, *args, **kwargs)
        except Exception as problem:
            recorder.error(method.__qualname__, problem)
            return None
        finally:
            recorder.busy = False

    return call  # type: ignore[return-value]
