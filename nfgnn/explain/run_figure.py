"""The figure of a run: loss and metric per epoch, and the filters that its nodes have learned."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from nfgnn.analysis import frequency_response, local_homophily
from nfgnn.explain.figure_style import (
    COLOURS,
    INK,
    canvas,
    headline,
    panels,
    percent,
    plain,
    save,
)
from nfgnn.training import Metric, find_metric, read_summary

_MAX_NODES = 20_000  # read at most about twice as many, to bound memory
_MAX_CURVES = 150
_SPIKE = 3.0
"""Largest loss, relative to the usual ones, from which the axis leaves it out."""
_SAME_FILTER = 0.05
"""Distance from the mean filter, relative to its size, below which filters count as equal."""
_ROUNDING = 1e-5
"""Difference of two responses, relative to the largest, that is due to float32."""


@dataclass(frozen=True)
class RunFigureData:
    """What the figure shows, as plain numbers."""

    title: str
    metric: Metric
    """Metric of the run."""
    curves: list[np.ndarray]
    """One learning curve per seed: ``history.csv`` with its columns as fields."""
    best_epochs: list[int]
    frequencies: np.ndarray
    """λ, ``[points]``."""
    responses: np.ndarray
    """Frequency responses in the first seed, ``[n, points]``; empty for models without filters.
    A model with one filter for all nodes has equal rows."""
    homophily: np.ndarray
    """Share of neighbours of the same class per node; NaN where undefined."""


def write_run_figure(run: Path, data: Data) -> Path:
    """Draw the figure of a run folder as ``run.png`` in it, and return its path."""
    edge_index = data.get("edge_index")
    if edge_index is None:  # a store has no edges
        homophily = np.full(data.num_nodes, np.nan)
    else:
        homophily = local_homophily(edge_index, data.y).numpy()
    path = run / "run.png"
    draw_run(read_run(run, homophily), path)
    return path


def read_run(run: Path, homophily: np.ndarray, points: int = 101) -> RunFigureData:
    """Read the data of the figure from a run folder."""
    summary = read_summary(run)
    seeds = [run / f"seed-{seed}" for seed in summary["seeds"]]
    curves = []
    for seed in seeds:
        curves.append(np.genfromtxt(seed / "history.csv", delimiter=",", names=True, ndmin=1))
    frequencies = torch.empty(0)
    responses = torch.empty(0, points)
    if (seeds[0] / "coefficients.npy").is_file():
        psi = np.load(seeds[0] / "coefficients.npy", mmap_mode="r", allow_pickle=False)
        every = max(1, len(psi) // _MAX_NODES)
        homophily = homophily[::every]
        frequencies, responses = frequency_response(
            torch.from_numpy(psi[::every].copy()),
            summary["filter"]["basis"],
            points,
            summary["filter"]["lambda_max"],
        )
    return RunFigureData(
        title=result_title(summary),
        metric=_metric(summary),
        curves=curves,
        best_epochs=[_best_epoch(seed) for seed in seeds],
        frequencies=frequencies.numpy(),
        responses=responses.numpy(),
        homophily=homophily,
    )


def _metric(summary: dict[str, Any]) -> Metric:
    """Return the metric of a run; folders of earlier versions do not name it."""
    return find_metric(summary.get("metric", "accuracy"))


def _best_epoch(seed: Path) -> int:
    """Return the epoch whose weights a run has kept."""
    metrics = json.loads((seed / "metrics.json").read_text(encoding="utf-8"))
    return int(metrics["best_epoch"])


def result_title(summary: dict[str, Any]) -> str:
    """Return what a run folder has found as one line: the mean test score of a model."""
    metric = _metric(summary)
    key = f"test_{metric.name}"
    score = summary[key] if key in summary else summary[f"unobserved_{metric.name}"]
    model = summary["config"]["model"]
    name = plain(summary["dataset"])
    value = f"{metric.shown_interval(score, 1)} {metric.title}"
    title = f"{model} reaches {value} on {name} ({summary['protocol']})"
    dead = len(summary.get("dead_seeds", []))
    if dead:
        title += f" ({dead} of {len(summary['seeds'])} runs never rose above chance)"
    return title


def draw_run(content: RunFigureData, path: Path) -> None:
    """Draw the figure to a file, whose extension selects the format."""
    metric_column = f"val_{content.metric.name}"
    has_metric = all(metric_column in (curve.dtype.names or ()) for curve in content.curves)
    has_filters = len(content.responses) > 0
    with canvas() as plt:
        figure, axes = panels(plt, 1 + has_metric + has_filters, width=3.8, height=3.2)
        _draw_loss(axes[0, 0], content)
        if has_metric:
            _draw_metric(axes[0, 1], content, metric_column)
        if has_filters:
            _draw_responses(figure, axes[0, -1], content)
        headline(figure, content.title)
        save(figure, path.parent, path.stem, (path.suffix.removeprefix("."),))


def _draw_loss(ax: Any, content: RunFigureData) -> None:
    alpha = _opacity(content)
    for curve, best in zip(content.curves, content.best_epochs):
        epoch = curve["epoch"]
        loss = curve["val_loss"]
        ax.plot(epoch, curve["train_loss"], color=COLOURS[0], alpha=alpha, lw=1)
        ax.plot(epoch, loss, color=COLOURS[1], alpha=alpha, lw=1)
        ax.plot(best, loss[best], "o", color=COLOURS[1], ms=4)
    losses = [curve[name] for curve in content.curves for name in ("train_loss", "val_loss")]
    _leave_out_spikes(ax, np.concatenate(losses))
    first = min(content.best_epochs)
    last = max(content.best_epochs)
    epochs = f"epoch {first}" if first == last else f"epochs {first} to {last}"
    ax.set(xlabel="epoch", ylabel="loss", title=f"Best weights at {epochs}")
    # Without a location, Matplotlib chooses the best one, too, but warns if that takes a second.
    ax.legend(ax.lines[:3], ("training", "validation", "best epoch"), loc="best")


def _draw_metric(ax: Any, content: RunFigureData, column: str) -> None:
    alpha = _opacity(content)
    metric = content.metric
    at_best = []
    for curve, best in zip(content.curves, content.best_epochs):
        values = curve[column]
        at_best.append(values[best])
        ax.plot(curve["epoch"], values, color=COLOURS[1], alpha=alpha, lw=1)
        ax.plot(best, values[best], "o", color=COLOURS[1], ms=4)
    ax.yaxis.set_major_formatter(lambda value, _: metric.shown(value, 0))
    title = f"{metric.shown(float(np.mean(at_best)), 1)} at the best epoch"
    if len(at_best) > 1:
        title += f", mean of {len(at_best)} runs"
    ax.set(xlabel="epoch", ylabel=f"validation {metric.title}", title=title)


def _opacity(content: RunFigureData) -> float:
    """Return the opacity of curves: many are drawn on top of each other."""
    return max(0.25, 1 / math.sqrt(len(content.curves)))


def _leave_out_spikes(ax: Any, losses: np.ndarray) -> None:
    """Limit the axis to 98 % of the values if the others would flatten the curves."""
    finite = losses[np.isfinite(losses)]
    if not len(finite):
        return
    low, usual, high = np.quantile(finite, (0.0, 0.98, 1.0))
    if high - low > _SPIKE * (usual - low) > 0:
        margin = 0.05 * (usual - low)
        ax.set_ylim(low - margin, usual + margin)


def _draw_responses(figure: Any, ax: Any, content: RunFigureData) -> None:
    import matplotlib as mpl

    ax.set(xlabel="frequency λ", ylabel="response", title=_filter_finding(content.responses))
    if _is_one_filter(content.responses):
        ax.plot(content.frequencies, content.responses[0], color=INK, lw=1)
        return
    count = min(_MAX_CURVES, len(content.responses))
    nodes = np.linspace(0, len(content.responses) - 1, count).astype(int)
    # Nodes with extreme homophily are drawn last, on top of the others.
    homophily = np.nan_to_num(content.homophily[nodes], nan=0.5)
    nodes = nodes[np.argsort(np.abs(homophily - 0.5), kind="stable")]
    colours = mpl.colormaps["viridis"]
    for node in nodes:
        h = content.homophily[node]
        colour = "0.7" if np.isnan(h) else colours(h)
        ax.plot(content.frequencies, content.responses[node], color=colour, lw=0.6, alpha=0.5)
    mean = content.responses.mean(0)
    ax.plot(content.frequencies, mean, color=INK, lw=1, ls="--", label="mean of all nodes")
    ax.legend(loc="best")
    scale = mpl.cm.ScalarMappable(mpl.colors.Normalize(0, 1), colours)
    figure.colorbar(scale, ax=ax, label="neighbours of the same class")


def _filter_finding(responses: np.ndarray) -> str:
    """Return how much the filters of the nodes differ from their mean."""
    if _is_one_filter(responses):
        return "One filter for all nodes"
    mean = responses.mean(0)
    distance = np.linalg.norm(responses - mean, axis=1).mean() / max(np.linalg.norm(mean), 1e-12)
    if distance < _SAME_FILTER:
        return "All nodes share nearly one filter"
    return f"Filters differ by {percent(distance)} from their mean"


def _is_one_filter(responses: np.ndarray) -> bool:
    """Whether all nodes have the same filter, as in a model with one filter for the whole graph.

    The responses of equal coefficients may differ in the last digits.
    """
    largest = np.abs(responses).max()
    return bool(np.abs(responses - responses[0]).max() <= _ROUNDING * largest)
