"""Pictures of one probe as plain Plotly data: each function takes traces and returns a figure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trainlint.runtime.evidence import Evidence

# More lines than this in one picture cannot be told apart.
MOST_LINES = 16
# The update ratio that is usual.
USUAL_LOG_RATIO = -3


@dataclass
class Figure:
    """One picture: a title, a sentence on how to read it, Plotly traces and layout."""

    name: str
    title: str
    caption: str
    data: list[dict[str, Any]] = field(default_factory=list)
    layout: dict[str, Any] = field(default_factory=dict)


def _clean(values: list[Any]) -> list[float | None]:
    """JSON has no NaN; Plotly leaves a gap at null."""
    return [v if v is not None and math.isfinite(v) else None for v in values]


def _line(name: str, y: list[Any], x: list[Any] | None = None, **style: Any) -> dict[str, Any]:
    xs = list(range(len(y))) if x is None else x
    return {"type": "scatter", "mode": "lines", "name": name, "x": xs, "y": _clean(y), **style}


def _axes(x: str, y: str, **more: Any) -> dict[str, Any]:
    return {"xaxis": {"title": {"text": x}}, "yaxis": {"title": {"text": y}, **more}}


def losses(evidence: Evidence) -> Figure:
    """Observed, fixed batch, zeroed input."""
    figure = Figure(
        "loss",
        "Loss",
        "The observed steps, the same batch again and again, and the same with its input zeroed. "
        "A model that can learn drives the fixed batch down, faster than without its input.",
        layout=_axes("step", "loss"),
    )
    names = (("observed", evidence.observe), ("fixed batch", evidence.fixed))
    for name, trace in (*names, ("zeroed input", evidence.zeroed)):
        if trace is not None and trace.steps:
            figure.data.append(_line(name, [s.loss for s in trace.steps]))
    return figure


def _distribution(name: str, values: list[float], edges: list[float]) -> dict[str, Any]:
    centres = [(a + b) / 2 for a, b in itertools.pairwise(edges)]
    return _line(name, values, centres)


def activations(evidence: Evidence) -> Figure:
    """The distribution of each layer's outputs."""
    layers = [a for a in evidence.trace.activations if a.edges][:MOST_LINES]
    figure = Figure(
        "activations",
        "Activation distributions",
        "Outputs of each layer at one step. Widths should be about the same from layer to layer.",
        layout=_axes("value", "density"),
    )
    for layer in layers:
        text = f"{layer.name} ({layer.cls}) mean {_last(layer.mean)} std {_last(layer.std)}"
        if layer.saturated:
            text += f" saturated {layer.saturated[-1]:.0%}"
        figure.data.append(_distribution(text, layer.values, layer.edges))
    return figure


def _last(values: list[float]) -> str:
    return f"{values[-1]:+.2g}" if values else "-"


def activation_gradients(evidence: Evidence) -> Figure:
    """The distribution of the gradient at each layer's output."""
    layers = [a for a in evidence.trace.activations if a.grad_edges][:MOST_LINES]
    figure = Figure(
        "gradients",
        "Gradient distributions",
        "Gradients at the outputs of each layer at one step. Widths that shrink or grow by orders "
        "of magnitude mean vanishing or exploding gradients.",
        layout=_axes("gradient", "density"),
    )
    for layer in layers:
        mean, std = layer.grad_mean or 0.0, layer.grad_std or 0.0
        text = f"{layer.name} ({layer.cls}) mean {mean:+.2g} std {std:.2g}"
        figure.data.append(_distribution(text, layer.grad_values, layer.grad_edges))
    return figure


def weight_gradients(evidence: Evidence) -> Figure:
    """The distribution of each weight matrix's gradient, with its ratio to the data."""
    figure = Figure(
        "weight-gradients",
        "Weight gradients",
        "Gradients of the weight matrices at one step, with the ratio of their spread to that of "
        "the weights (grad:data).",
        layout=_axes("gradient", "density"),
    )
    for weight in [w for w in evidence.trace.weight_grads if w.edges][:MOST_LINES]:
        text = f"{weight.name} {tuple(weight.shape)} grad:data {weight.ratio:.1e}"
        figure.data.append(_distribution(text, weight.values, weight.edges))
    return figure


def _log_ratio(update: float, weight: float) -> float | None:
    return math.log10(update / weight) if update > 0 and weight > 0 else None


def update_ratios(evidence: Evidence) -> Figure:
    """log10 of update over weight, by step."""
    figure = Figure(
        "update-ratio",
        "Update to data ratio (log10)",
        "How far each step moves the weight matrices, relative to their size. About -3 is usual.",
        layout=_axes("step", "log10 ratio"),
    )
    params = [p for p in evidence.trace.params if p.kind == "weight" and p.update_norm]
    longest = 0
    for param in params[:MOST_LINES]:
        pairs = zip(param.update_norm, param.weight_norm, strict=False)
        ratios = [_log_ratio(u, w) for u, w in pairs]
        longest = max(longest, len(ratios))
        figure.data.append(_line(param.name, ratios))
    if figure.data:
        style = {"line": {"dash": "dash", "color": "#888"}}
        ends = [USUAL_LOG_RATIO, USUAL_LOG_RATIO]
        figure.data.append(_line("usual", ends, [0, longest - 1], **style))
    return figure


def gradient_norms(evidence: Evidence) -> Figure:
    """The gradient norm of each parameter, in forward order."""
    figure = Figure(
        "gradient-norm",
        "Gradient norm by layer",
        "Median over the observed steps, in the order in which the layers run.",
        layout={**_axes("", "gradient norm", type="log"), "showlegend": False},
    )
    params = [p for p in evidence.trace.params if p.kind == "weight" and p.grad_norm]
    params = sorted(params, key=lambda p: p.order or 0)[: 4 * MOST_LINES]
    if params:
        middle = [sorted(p.grad_norm)[len(p.grad_norm) // 2] or None for p in params]
        bars = {"type": "bar", "x": [p.name for p in params], "y": _clean(middle)}
        figure.data.append(bars)
    return figure


def time_by_step(evidence: Evidence) -> Figure:
    """Seconds a step, and how much of it waits for data."""
    steps = evidence.trace.steps[1:]
    figure = Figure(
        "time",
        "Time by step",
        "Seconds between the ends of two steps, under instruments, and the part spent waiting for "
        "the DataLoader.",
        layout=_axes("step", "seconds"),
    )
    if steps:
        xs = list(range(1, len(steps) + 1))
        figure.data.append(_line("step", [s.seconds for s in steps], xs))
        figure.data.append(_line("waiting for data", [s.data_wait for s in steps], xs))
    return figure


def memory_by_step(evidence: Evidence) -> Figure:
    """Memory after each step."""
    figure = Figure(
        "memory",
        "Memory by step",
        "Allocated on the device, or resident in the process on a CPU. Steady growth is a leak.",
        layout=_axes("step", "MiB"),
    )
    if any(s.memory for s in evidence.trace.steps):
        figure.data.append(_line("memory", [s.memory / 2**20 for s in evidence.trace.steps]))
    return figure


ALL: tuple[Callable[[Evidence], Figure], ...] = (
    losses,
    activations,
    activation_gradients,
    weight_gradients,
    update_ratios,
    gradient_norms,
    time_by_step,
    memory_by_step,
)


def all_figures(evidence: Evidence) -> list[Figure]:
    """Every picture for which there is data."""
    figures = [draw(evidence) for draw in ALL]
    return [figure for figure in figures if figure.data]
