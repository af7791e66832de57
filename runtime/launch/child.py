"""The child: run the user's script as python would, under instruments, and leave a trace.

Forked by the nursery, or started anew where a script starts itself again. Nothing here may change
what the script computes before the probe has seen the steps it came for.
"""

from __future__ import annotations

import os
import random
import runpy
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainlint.runtime.launch.following import Following
from trainlint.runtime.launch.lifeline import die_with_parent
from trainlint.runtime.launch.spec import ChildSpec
from trainlint.runtime.launch.stop import StopProbe
from trainlint.runtime.places import is_our_file, is_user_file
from trainlint.runtime.recorder import Recorder
from trainlint.runtime.sandbox.files import Files
from trainlint.runtime.sandbox.trackers import quiet
from trainlint.runtime.trace import Ending, Place

# A script that goes on this long after it was told to stop is ended from outside.
GRACE_SECONDS = 8.0
NO_INPUT = " (nobody can type under the probe: give it a file, `probe train.py < input`)"


def prepare_path(spec: ChildSpec) -> None:
    """``sys.argv`` and ``sys.path[0]`` as ``python script`` or ``python -m module`` sets them."""
    sys.argv = [spec.target, *spec.args]
    sys.path[0] = os.getcwd() if spec.module else os.path.dirname(os.path.realpath(spec.target))


def run_target(spec: ChildSpec) -> None:
    """Run the script or module as ``__main__``."""
    if spec.module:
        runpy.run_module(spec.target, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(spec.target, run_name="__main__")


def same_random_start(spec: ChildSpec) -> None:
    """Give every phase of one probe the same starting point, for scripts that set no seed.

    A script that sets a seed overrides this. torch's own generator has its seed from the nursery,
    of which all phases are forked.
    """
    state = spec.run_folder / "seed.txt"
    if not state.exists():
        state.write_text(str(random.SystemRandom().randrange(2**32)))
    random.seed(int(state.read_text()))
    import numpy

    numpy.random.seed(int(state.read_text()))


def user_traceback(problem: BaseException) -> tuple[str, Place | None]:
    """The traceback as it is without the probe, and the user's innermost line."""
    shown = traceback.TracebackException.from_exception(problem)
    _leave_out_ours(shown)
    text = "".join(shown.format())
    own = [e for e in shown.stack if is_user_file(e.filename)]
    if not own:
        return text, None
    last = own[-1]
    return text, Place(last.filename, last.lineno or 0, last.line or "", last.name)


def _leave_out_ours(shown: traceback.TracebackException | None) -> None:
    """Drop our frames, and those of runpy above the script."""
    if shown is None:
        return
    kept = [e for e in shown.stack if not is_our_file(e.filename) and "runpy" not in e.filename]
    shown.stack = traceback.StackSummary.from_list(kept)
    _leave_out_ours(shown.__cause__)
    _leave_out_ours(shown.__context__)


def ran_out_of_memory(problem: BaseException) -> bool:
    """Whether an exception means that memory could not be had, on the CPU or a GPU."""
    named = isinstance(problem, MemoryError) or type(problem).__name__ == "OutOfMemoryError"
    return named or "can't allocate memory" in str(problem)


class Child:
    """The life of one child run."""

    def __init__(self, spec: ChildSpec) -> None:
        self.spec = spec
        self.recorder = Recorder(spec)
        self._exit = os._exit
        self._thread_problem: BaseException | None = None
        self.recorder.hard_exit = lambda: self.leave("stopped", "the script swallowed the stop")

    def leave(self, kind: str, detail: str) -> None:
        """Keep what was seen and end the process at once."""
        if self.recorder.trace.ending.kind == "running":
            self.recorder.trace.ending = Ending(kind, detail)
        self.recorder.flush(force=True)
        self._exit(0)

    def watch_os_exit(self) -> None:
        """``os._exit`` in the training process still leaves a trace."""
        owner = os.getpid()

        def leave(code: int) -> None:
            if os.getpid() == owner and self.recorder.trace.ending.kind == "running":
                self.recorder.trace.ending = Ending("exit", f"os._exit({code})")
                self.recorder.flush(force=True)
            self._exit(code)

        os._exit = leave  # type: ignore[assignment]

    def run_script(self) -> None:
        """Run the script as python would."""
        prepare_path(self.spec)
        same_random_start(self.spec)
        run_target(self.spec)

    def run(self, body: Callable[[], None]) -> BaseException | None:
        """Run ``body`` under a session, record how it ended, and return what it raised.

        The stop of the probe does not count.
        """
        from trainlint.runtime.session import Session

        Session.leave_inherited()
        session = Session(self.recorder)
        session.open()
        if session.redirects is not None:
            Files(session.redirects).install(session.patches)
        Following(self.recorder).install(session.patches)
        self.watch_os_exit()
        self.watch_threads()
        self.recorder.trace.ending = Ending("running")
        problem: BaseException | None = None
        try:
            body()
        except BaseException as caught:
            problem = caught
        self.recorder.trace.ending = self._ending(problem or self._thread_problem)
        session.finish()
        return None if self.recorder.stopping else problem

    def watch_threads(self) -> None:
        """A training thread that ends tells the main thread, which may wait for it for ever."""
        shown = threading.excepthook

        def ended(args: Any) -> None:
            if isinstance(args.exc_value, StopProbe):
                os.kill(os.getpid(), signal.SIGINT)
                return
            if self.recorder.active() and not isinstance(args.exc_value, SystemExit):
                self._thread_problem = args.exc_value
            shown(args)

        threading.excepthook = ended

    def _ending(self, problem: BaseException | None) -> Ending:
        if self.recorder.stopping:
            return Ending("stopped", self.recorder.stopping)
        if problem is None:
            return Ending("finished", "the script ended by itself")
        if isinstance(problem, SystemExit) and problem.code in (None, 0):
            return Ending("finished", "sys.exit()")
        if isinstance(problem, SystemExit):
            return Ending("exit", f"sys.exit({problem.code!r})", place=user_traceback(problem)[1])
        text, place = user_traceback(problem)
        if isinstance(problem, KeyboardInterrupt):
            return Ending("interrupted", "Ctrl-C", text, place)
        sys.stderr.write(text)
        said = f"{type(problem).__name__}: {problem}".strip(": ")
        memory = "out of memory: " if ran_out_of_memory(problem) else ""
        asked = NO_INPUT if isinstance(problem, EOFError) and not self.spec.has_input else ""
        return Ending("crashed", memory + said + asked, text, place)

    def limit_shutdown(self) -> None:
        """Threads and exit handlers of the script get a moment, then the process ends."""
        timer = threading.Timer(GRACE_SECONDS, self._exit, (0,))
        timer.daemon = True
        timer.start()

    def watch_stop(self) -> None:
        """End a script that goes on after the stop."""

        def look() -> None:
            if self.recorder.stopping and self.recorder.trace.ending.kind == "running":
                self.leave("stopped", self.recorder.stopping)
            elif self.recorder.trace.ending.kind == "running":
                self._later(look)

        self._later(look)

    def _later(self, action: Any) -> None:
        timer = threading.Timer(GRACE_SECONDS, action)
        timer.daemon = True
        timer.start()


def main(path: str) -> None:
    """One child run, in a process of its own."""
    die_with_parent(os.getppid())
    spec = ChildSpec.read(path)
    quiet(Path(spec.folder))
    os.environ["TRAINLINT_PROBE"] = spec.phase
    child = Child(spec)
    child.watch_stop()
    child.run(child.run_script)
    child.limit_shutdown()
