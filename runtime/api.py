"""The same checks without a script: from a notebook, or from a test."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from typing import Any

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.judge import judge
from trainlint.runtime.launch.spec import ChildSpec
from trainlint.runtime.launch.stop import StopProbe
from trainlint.runtime.report.result import Report
from trainlint.runtime.trace import Ending


class ProbeFailedError(AssertionError):
    """Training as given has a FAIL."""


def probe(
    model: Any,
    loader: Any,
    loss_fn: Any,
    optimizer: Any,
    *,
    steps: int = 10,
    restore: bool = True,
) -> Report:
    """Train for a few steps under instruments, and report.

    The usual loop: ``loss_fn(model(inputs), targets)`` for pairs from ``loader``. With ``restore``
    the model, the optimizer and the random states are put back afterwards.

    >>> report = probe(model, loader, loss_fn, optimizer)  # doctest: +SKIP
    >>> report.verdict.headline  # doctest: +SKIP
    'ready to train'
    """
    import copy

    from trainlint.runtime.phases.randomness import RandomState
    from trainlint.runtime.recorder import Recorder
    from trainlint.runtime.session import Session

    spec = ChildSpec(
        "probe()",
        False,
        [],
        tempfile.mkdtemp(prefix="trainlint-probe-"),
        steps=steps,
        sandbox=False,
    )
    recorder = Recorder(spec)
    session = Session(recorder)
    state = RandomState.take()
    weights = copy.deepcopy(model.state_dict()) if restore else None
    moments = copy.deepcopy(optimizer.state_dict()) if restore else None
    session.open()
    try:
        with contextlib.suppress(StopProbe):
            _train(model, loader, loss_fn, optimizer, steps)
        recorder.trace.ending = Ending("finished", "probe()")
        session.finish()
    finally:
        session.close()
        if weights is not None and moments is not None:
            model.load_state_dict(weights)
            optimizer.load_state_dict(moments)
            optimizer.zero_grad()
            state.restore()
        shutil.rmtree(spec.folder, ignore_errors=True)
    evidence = Evidence("probe()", recorder.trace, seconds=recorder.trace.seconds)
    evidence.skipped["fixed batch"] = "it needs a script that can be started again"
    return Report(evidence, judge(evidence))


def _train(model: Any, loader: Any, loss_fn: Any, optimizer: Any, steps: int) -> None:
    done = 0
    while done < steps:
        before = done
        for batch in loader:
            inputs, targets = batch[0], batch[1]
            optimizer.zero_grad()
            loss_fn(model(inputs), targets).backward()
            optimizer.step()
            done += 1
            if done >= steps:
                return
        if done == before:
            return


def assert_trains(
    model: Any, loader: Any, loss_fn: Any, optimizer: Any, *, steps: int = 10, strict: bool = False
) -> Report:
    """For tests: raise :class:`ProbeFailedError` unless the set-up is ready to train."""
    report = probe(model, loader, loss_fn, optimizer, steps=steps)
    if report.exit_code(strict):
        raise ProbeFailedError(str(report))
    return report
