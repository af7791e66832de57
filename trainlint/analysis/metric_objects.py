"""Metric objects that add up over batches: when they are updated, read and reset."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from trainlint.analysis.evaluations import contexts
from trainlint.analysis.file_model import FileModel
from trainlint.analysis.ownership import reachable
from trainlint.analysis.trace import Event, EventKind, Loop, Trace, events, parts
from trainlint.analysis.values import Constant, Object, Value, elements

_LIBRARIES = ("torchmetrics.", "torcheval.metrics.")
_ADDS = frozenset({"update", "forward", ""})


@dataclass(frozen=True, eq=False)
class StaleMetric:
    """``computed`` reads a metric on each lap of ``loop``; nothing resets it in between."""

    metric: Object
    computed: Event
    loop: Loop


def stale_metrics(file: FileModel) -> Iterator[StaleMetric]:
    """The metrics that a file reads epoch after epoch with all earlier epochs still in them."""
    for run, _ in contexts(file):
        for loop in _loops(run.trace):
            if isinstance(loop.iterated, Constant):
                continue
            for event in _directly(loop.body):
                for metric in _subjects(event, "compute"):
                    is_older = metric.birth < loop.start
                    if is_older and _adds_up(loop, metric) and not _may_be_reset(loop.body, metric):
                        yield StaleMetric(metric, event, loop)


def _loops(trace: Trace) -> Iterator[Loop]:
    for step in trace:
        if isinstance(step, Event):
            continue
        if isinstance(step, Loop):
            yield step
        for part in parts(step):
            yield from _loops(part)


def _directly(trace: Trace) -> Iterator[Event]:
    """The events of a lap that are in no loop inside it."""
    for step in trace:
        if isinstance(step, Event):
            yield step
        elif not isinstance(step, Loop):
            for part in parts(step):
                yield from _directly(part)


def _adds_up(loop: Loop, metric: Object) -> bool:
    """Whether a loop inside goes on adding to the metric."""
    return any(
        metric in _subjects(event, *_ADDS)
        for inner in _loops(loop.body)
        for event in events(inner.body, EventKind.OPAQUE)
    )


def _may_be_reset(trace: Trace, metric: Object) -> bool:
    """Whether something resets the metric, or gets it and might."""
    for event in events(trace, EventKind.OPAQUE):
        if metric in _subjects(event, "update", "compute", "forward", ""):
            continue
        if metric in reachable(event.arguments, through_tensors=False):
            return True
    return False


def _subjects(event: Event, *methods: str) -> list[Object]:
    """The metrics that one of these methods is called on; "" is calling the object itself."""
    if event.kind is not EventKind.OPAQUE or not isinstance(event.node, ast.Call):
        return []
    function = event.node.func
    is_method = isinstance(function, ast.Attribute) and function.attr in methods
    found = [item for item in elements(event.target) if is_metric(item)]
    if is_method or ("" in methods and not _is_method_of_metric(function)):
        return [item for item in found if isinstance(item, Object)]
    return []


def _is_method_of_metric(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr in (
        "compute",
        "reset",
        "update",
        "to",
    )


def is_metric(value: Value) -> bool:
    """Whether a value is a metric object of a library that adds up until it is reset."""
    return isinstance(value, Object) and value.dotted.startswith(_LIBRARIES)
