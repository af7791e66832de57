"""Pictures of one probe as plain Plotly data: each function takes traces and returns a figure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trainlint.runtime.evidence import Evidence

# More layers than this in one picture cannot be told apart; the first and last ones are shown.
MOST_LINES = 16
# Wider distributions than this many times the median spread are cut off at the sides.
SPREADS = 5
# The update ratio that is usual.
USUAL_LOG_RATIO = -3


@dataclass
class Figure:
    """One picture: a title, a sentence on how to read it, Plotly traces and layout.

    Where there are ``columns``, a table below the picture has one row a trace in place of a legend.
    """

    name: str
    title: str
    caption: str
    data: list[dict[str, Any]] = field(default_factory=list)
    layout: dict[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = field(default_factory=list)


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


def depth_colour(position: int, count: int) -> str:
    """From violet at the first layer to orange at the last: readable on white and on black."""
    return f"hsl({270 - 240 * position / max(1, count - 1):.0f}, 65%, 55%)"


def _spread_out(items: list[Any]) -> list[Any]:
    """At most :data:`MOST_LINES` of the layers, the first and the last among them."""
    if len(items) <= MOST_LINES:
        return items
    picked = {round(i * (len(items) - 1) / (MOST_LINES - 1)) for i in range(MOST_LINES)}
    return [items[i] for i in sorted(picked)]


def _add_distribution(
    figure: Figure, row: tuple[str, ...], values: list[float], edges: list[float]
) -> None:
    """One curve, scaled to a peak of 1: layers differ by orders of magnitude in their widths."""
    centres = [(a + b) / 2 for a, b in itertools.pairwise(edges)]
    peak = max(values) or 1.0
    figure.data.append(_line(row[0], [v / peak for v in values], centres))
    figure.rows.append(row)


def _finish_distributions(figure: Figure, spreads: list[float]) -> Figure:
    """Colours by depth, and an axis that the typical layer fills."""
    for position, line in enumerate(figure.data):
        line["line"] = {"color": depth_colour(position, len(figure.data)), "width": 1.6}
    figure.layout["showlegend"] = False
    if spreads:
        reach = SPREADS * sorted(spreads)[len(spreads) // 2]
        figure.layout["xaxis"]["range"] = [-reach, reach]
    return figure


def activations(evidence: Evidence) -> Figure:
    """The distribution of each layer's outputs."""
    layers = _spread_out([a for a in evidence.trace.activations if a.edges])
    figure = Figure(
        "activations",
        "Activation distributions",
        "Outputs of each layer at one step, from the first layer (violet) to the last (orange). "
        "Widths should be about the same from layer to layer.",
        layout=_axes("value", "density, peak = 1"),
        columns=("layer", "type", "mean", "std", "saturated"),
    )
    for layer in layers:
        saturated = f"{layer.saturated[-1]:.0%}" if layer.saturated else ""
        row = (layer.name, layer.cls, _last(layer.mean), _last(layer.std), saturated)
        _add_distribution(figure, row, layer.values, layer.edges)
    return _finish_distributions(figure, [a.std[-1] for a in layers if a.std])


def _last(values: list[float]) -> str:
    return f"{values[-1]:.2g}" if values else ""


def activation_gradients(evidence: Evidence) -> Figure:
    """The distribution of the gradient at each layer's output."""
    layers = _spread_out([a for a in evidence.trace.activations if a.grad_edges])
    figure = Figure(
        "gradients",
        "Gradient distributions",
        "Gradients at the outputs of each layer at one step. Widths that shrink or grow by orders "
        "of magnitude mean vanishing or exploding gradients.",
        layout=_axes("gradient", "density, peak = 1"),
        columns=("layer", "type", "mean", "std"),
    )
    for layer in layers:
        row = (layer.name, layer.cls, f"{layer.grad_mean or 0:.2g}", f"{layer.grad_std or 0:.2g}")
        _add_distribution(figure, row, layer.grad_values, layer.grad_edges)
    return _finish_distributions(figure, [a.grad_std for a in layers if a.grad_std])


def weight_gradients(evidence: Evidence) -> Figure:
    """The distribution of each weight matrix's gradient, with its ratio to the data."""
    weights = _spread_out([w for w in evidence.trace.weight_grads if w.edges])
    figure = Figure(
        "weight-gradients",
        "Weight gradients",
        "Gradients of the weight matrices at one step. grad:data is the ratio of their spread to "
        "that of the weights.",
        layout=_axes("gradient", "density, peak = 1"),
        columns=("weight", "shape", "mean", "std", "grad:data"),
    )
    for weight in weights:
        shape = " x ".join(str(size) for size in weight.shape)
        numbers = (f"{weight.mean:.2g}", f"{weight.std:.2g}", f"{weight.ratio:.1e}")
        _add_distribution(figure, (weight.name, shape, *numbers), weight.values, weight.edges)
    return _finish_distributions(figure, [w.std for w in weights])


def _log_ratio(update: float, weight: float) -> float | None:
    return math.log10(update / weight) if update > 0 and weight > 0 else None


def update_ratios(evidence: Evidence) -> Figure:
    """log10 of update over weight, by step."""
    figure = Figure(
        "update-ratio",
        "Update to data ratio (log10)",
        "How far each step moves the weight matrices, relative to their size. About -3 is usual "
        "(dashed).",
        layout={**_axes("step", "log10 ratio"), "showlegend": False},
        columns=("weight", "last"),
    )
    params = [p for p in evidence.trace.params if p.kind == "weight" and p.update_norm]
    params = _spread_out(sorted(params, key=lambda p: p.order or 0))
    longest = 0
    for position, param in enumerate(params):
        pairs = zip(param.update_norm, param.weight_norm, strict=False)
        ratios = [_log_ratio(u, w) for u, w in pairs]
        longest = max(longest, len(ratios))
        colour = depth_colour(position, len(params))
        figure.data.append(_line(param.name, ratios, line={"color": colour, "width": 1.6}))
        known = [r for r in ratios if r is not None]
        figure.rows.append((param.name, f"{known[-1]:.1f}" if known else ""))
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
