"""A process that has imported torch once and forks a child for each phase.

Started as ``python nursery.py PARENT``, with the id of the process that it ends with. It reads
requests from its standard input, one JSON object a line, and answers each with two lines:
``[process id, null]`` at once, ``[process id, exit code]`` at the child's end. The phases of one
probe then share one import of torch, which takes longer than most phases.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any


def warm_up() -> None:
    """Import what every child needs; starts no thread and touches no device."""
    import torch._dynamo  # noqa: F401  every optimizer's constructor imports it, for seconds

    import trainlint.runtime.session  # noqa: F401


def become_child(request: dict[str, Any], answers: int) -> None:
    """In a new process: own session, own output, then the run."""
    from trainlint.runtime.launch.child import main

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setsid()
    os.close(answers)
    os.dup2(os.open(request["input"] or os.devnull, os.O_RDONLY), 0)
    if request["log"]:
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
    else:
        os.dup2(2, 1)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    main(request["spec"])


def serve(parent: int) -> None:
    """Answer requests until the parent closes the pipe, or is gone."""
    from trainlint.runtime.launch.lifeline import adopt_orphans, die_with_parent, end_orphans

    child = 0

    def end_all(*_: object) -> None:
        if child:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
        end_orphans()
        os._exit(1)

    signal.signal(signal.SIGTERM, end_all)
    die_with_parent(parent, signal.SIGTERM)
    adopt_orphans()
    warm_up()
    answers = os.dup(1)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            become_child(json.loads(line), answers)
            return
        _answer(answers, child, None)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        end_orphans()
        _answer(answers, child, code)


def _answer(answers: int, pid: int, code: int | None) -> None:
    os.write(answers, (json.dumps([pid, code]) + "\n").encode())


if __name__ == "__main__":
    # Only the package may be imported from here, not this file's folder.
    sys.path[0] = str(Path(sys.prefix))
    serve(int(sys.argv[1]))
