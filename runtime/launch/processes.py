"""Starting a child, following it, and leaving no orphan behind."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from trainlint.runtime.launch import nursery
from trainlint.runtime.launch.spec import ChildSpec
from trainlint.runtime.trace import Ending, Trace, from_json

POLL_SECONDS = 0.05
# With less than this, a run's own files cannot be written.
LEAST_SPACE = 2**20
# How long a child may take to react to one signal before the next, stronger one.
PATIENCE_SECONDS = 3.0

# Called again and again while a child runs, with what it last said of its progress.
Watcher = Callable[[str], None]


class Nursery:
    """The parent's end of the process that forks the children."""

    def __init__(self) -> None:
        # Process id and exit code of a child; no code at its start, no id at the nursery's end.
        self._answers: queue.Queue[tuple[int | None, int | None]] = queue.Queue()
        self._process = subprocess.Popen(
            [sys.executable, "-u", str(nursery.__file__), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            pid, code = json.loads(line)
            self._answers.put((pid, code))
        self._answers.put((None, None))

    def start(self, spec: ChildSpec, show_output: bool) -> int:
        """Start a child and return its process id."""
        request = {
            "spec": str(spec.write()),
            "log": "" if show_output else str(spec.log_path),
            "input": str(spec.input_path) if spec.has_input else "",
            "cwd": os.getcwd(),
            "environment": dict(os.environ),
        }
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the missing answer below says so
        try:
            pid, code = self._answers.get()
            while code is not None:  # a late word of an earlier child
                pid, code = self._answers.get()
        except BaseException:
            # Interrupted before the child's id came: it has to go down with its parent.
            self._process.kill()
            raise
        if pid is None:
            raise ChildStartError(f"{sys.executable} cannot import torch and trainlint.runtime")
        return pid

    def exit_code(self, child: int, seconds: float) -> int | None:
        """The child's exit code, if it ended within ``seconds``."""
        try:
            pid, code = self._answers.get(timeout=seconds)
        except queue.Empty:
            return None
        if pid is None:
            self._answers.put((None, None))
            return -int(signal.SIGKILL)
        return code if pid == child else None

    def close(self) -> None:
        """End the nursery."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class ChildStartError(Exception):
    """No child could be started."""


def run_child(
    home: Nursery, spec: ChildSpec, timeout: float, watch: Watcher, show_output: bool
) -> Trace:
    """Run one phase and return its trace, however it ended."""
    pid = home.start(spec, show_output)
    try:
        ending = _follow(home, pid, spec, timeout, watch)
    except BaseException:
        _end(home, pid, running=True)
        raise
    _end(home, pid, running=ending is not None and ending.kind == "hung")
    return read_trace(spec, ending)


def _follow(
    home: Nursery, pid: int, spec: ChildSpec, timeout: float, watch: Watcher
) -> Ending | None:
    """Wait for the child's end; ``None`` if it ended by itself."""
    last_news = time.monotonic()
    said = ""
    while (code := home.exit_code(pid, POLL_SECONDS)) is None:
        news = _read(spec.progress_path)
        if news and news != said:  # empty while it is written anew
            said, last_news = news, time.monotonic()
        watch(said)
        if time.monotonic() - last_news > timeout:
            return Ending("hung", f"no step for {timeout:.0f} s")
    if code >= 0:
        return None
    name = signal.Signals(-code).name
    likely = ", most likely for using too much memory" if name == "SIGKILL" else ""
    return Ending("killed", f"by {name}{likely}")


def _end(home: Nursery, pid: int, running: bool) -> None:
    """End a child and everything in its session: workers and other descendants."""
    if running:
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            _signal(pid, name)
            if home.exit_code(pid, PATIENCE_SECONDS) is not None:
                break
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _signal(pid: int, which: signal.Signals) -> None:
    """Signal a child that has not been waited for, and its session if it has made one yet."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        try:
            os.killpg(pid, which)
        except ProcessLookupError:
            os.kill(pid, which)


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def read_trace(spec: ChildSpec, ending: Ending | None = None) -> Trace:
    """What a child has left, with its end where only the parent knows it."""
    text = _read(spec.trace_path)
    trace = from_json(text) if text else Trace(phase=spec.phase, script=spec.target)
    if ending is not None and ending.kind == "hung":
        # Where it hung is where our interrupt found it.
        trace.ending.kind, trace.ending.detail = ending.kind, ending.detail
    elif trace.ending.kind == "exit" and not trace.ending.traceback:
        # What it said last is likely why: argparse, a missing file.
        trace.ending.traceback = _tail(spec)
    elif trace.ending.kind == "running":
        silent = Ending("crashed", "the process ended without a word", _tail(spec))
        trace.ending = ending or silent
    if trace.ending.kind == "crashed" and _is_full(spec.folder):
        trace.ending.detail += f" (no space is left for the run's files in {spec.folder})"
    return trace


def _is_full(folder: str) -> bool:
    try:
        return shutil.disk_usage(folder).free < LEAST_SPACE
    except OSError:
        return False


def _tail(spec: ChildSpec, lines: int = 20) -> str:
    return "\n".join(_read(spec.log_path).splitlines()[-lines:])


@contextlib.contextmanager
def signals_as_interrupt() -> Iterator[None]:
    """A polite termination of the parent ends the child too."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    polite = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = {which: signal.signal(which, interrupt) for which in polite}
    try:
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
