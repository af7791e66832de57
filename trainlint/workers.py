"""Worker processes that check files: one may crash without harm to the others' work."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess

from trainlint.garbage import keeping_all
from trainlint.outcome import CheckOptions, FileOutcome, FileTask

_BATCH_BYTES = 200_000
"""Work is handed out in pieces of at most this size, smaller ones when little is left."""

_MEMORY_LIMIT_KIB = 300 * 1024
"""A worker that has needed this much is replaced by a fresh one after its batch."""


@dataclass(slots=True)
class _Worker:
    """``pending`` are the files of its batch that it has not answered, the next one first."""

    process: BaseProcess
    connection: Connection
    pending: list[FileTask] = field(default_factory=list)
    peak_kib: int = 0


class WorkerPool:
    """Checks files in ``count`` processes.

    A process that dies is replaced; the file it was at gets an outcome that says so.
    """

    def __init__(self, options: CheckOptions, count: int) -> None:
        self._options = options
        self._count = count
        self._context = _context()
        self._workers: list[_Worker] = []

    def run(self, tasks: Iterable[FileTask]) -> Iterator[FileOutcome]:
        """The outcomes, in the order in which they become known. Hand in large files first.

        The next tasks are asked for while the workers are busy with the first ones.
        """
        coming, waiting = iter(tasks), deque[FileTask]()
        is_end = False
        try:
            while not is_end or waiting or any(worker.pending for worker in self._workers):
                if not is_end:
                    following = next(coming, None)
                    is_end = following is None
                    waiting.extend([following] if following else [])
                self._hand_out(waiting, all_known=is_end)
                for worker in self._ready(None if is_end else 0):
                    yield from self._receive(worker, waiting)
        finally:
            self._stop()

    def _hand_out(self, waiting: deque[FileTask], *, all_known: bool) -> None:
        limit = _BATCH_BYTES
        if all_known:
            limit = min(limit, sum(task.size for task in waiting) // (2 * self._count))
        idle = [worker for worker in self._workers if not worker.pending]
        while waiting and (idle or len(self._workers) < self._count):
            worker = idle.pop() if idle else self._start()
            worker.pending = _batch(waiting, limit)
            try:
                worker.connection.send(worker.pending)
            except OSError:  # It died while idle; what it left is noticed when receiving.
                continue

    def _ready(self, patience: float | None) -> list[_Worker]:
        """The workers that have an answer, after waiting for one for some seconds."""
        busy = {worker.connection: worker for worker in self._workers if worker.pending}
        found = wait(list(busy), patience) if busy else []
        return [busy[connection] for connection in found if connection in busy]

    def _receive(self, worker: _Worker, waiting: deque[FileTask]) -> Iterator[FileOutcome]:
        try:
            outcome, worker.peak_kib = worker.connection.recv()
        except (EOFError, OSError):
            yield self._bury(worker, waiting)
            return
        worker.pending.pop(0)
        if not worker.pending and worker.peak_kib > _MEMORY_LIMIT_KIB:
            self._retire(worker)
        yield outcome

    def _bury(self, worker: _Worker, waiting: deque[FileTask]) -> FileOutcome:
        """Return the dead worker's other files to the waiting ones, and blame the first."""
        self._retire(worker)
        culprit, *others = worker.pending
        waiting.extendleft(reversed(others))
        return FileOutcome(
            culprit.path,
            problem=f"trainlint crashed on this file ({_cause(worker.process.exitcode)})",
            is_fault=True,
        )

    def _retire(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.connection.close()
        worker.process.join()

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        inherited = [ours, *(worker.connection for worker in self._workers)]
        forked = self._context.get_start_method() == "fork"
        process = self._process(_serve, (theirs, self._options, inherited if forked else []))
        with _interrupts_held_back():
            process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        return worker

    def _process(self, target: Callable[..., None], arguments: tuple[object, ...]) -> BaseProcess:
        create: Callable[..., BaseProcess] = getattr(self._context, "Process")  # noqa: B009
        return create(target=target, args=arguments, daemon=True)

    def _stop(self) -> None:
        for worker in self._workers:
            worker.connection.close()
            if worker.pending:
                worker.process.terminate()
        for worker in self._workers:
            worker.process.join()
        self._workers.clear()


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Ctrl-C waits until the new process is known here, and has learnt to ignore it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _context() -> BaseContext:
    """Forking is fastest, and safe on Linux while there is a single thread."""
    if sys.platform == "linux" and threading.active_count() == 1:
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context("spawn")


def _batch(waiting: deque[FileTask], limit: int) -> list[FileTask]:
    """Take files off the left until they make a batch of so many bytes."""
    batch = [waiting.popleft()]
    size = batch[0].size
    while waiting and size + waiting[0].size <= limit:
        batch.append(waiting.popleft())
        size += batch[-1].size
    return batch


def _cause(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def _serve(connection: Connection, options: CheckOptions, inherited: Sequence[Connection]) -> None:
    """The life of a worker: check batches until the parent closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in inherited:
        # A copy kept open here would hide the parent's death from the other workers.
        other.close()
    from trainlint.file_check import FileChecker

    checker = FileChecker(options)
    with keeping_all(), contextlib.suppress(EOFError, OSError):
        while True:
            batch: list[FileTask] = connection.recv()
            for task in batch:
                connection.send((checker.check(task), _peak_memory_kib()))


def _peak_memory_kib() -> int:
    """The most memory this process has held; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // 1024 if sys.platform == "darwin" else peak
