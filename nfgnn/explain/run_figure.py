"""The figure of a run: learning curves, and the filters that its nodes have learned."""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from nfgnn.analysis import frequency_response, local_homophily
from nfgnn.explain.figure_style import COLOURS, canvas, panels, plain
from nfgnn.files import atomic_write
from nfgnn.training import find_metric, read_summary

_MAX_NODES = 20_000  # read at most about twice as many, to bound memory
_MAX_CURVES = 150


@dataclass(frozen=True)
class RunFigureData:
    """What the figure shows, as plain numbers."""

    title: str
    curves: list[np.ndarray]
    """One learning curve per seed: ``history.csv`` with its columns as fields."""
    best_epochs: list[int]
    frequencies: np.ndarray
    """λ, ``[points]``."""
    responses: np.ndarray
    """Frequency responses in the first seed, ``[n, points]``; empty for models without filters."""
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
        curves=curves,
        best_epochs=[_best_epoch(seed) for seed in seeds],
        frequencies=frequencies.numpy(),
        responses=responses.numpy(),
        homophily=homophily,
    )


def _best_epoch(seed: Path) -> int:
    """Return the epoch whose weights a run has kept."""
    metrics = json.loads((seed / "metrics.json").read_text(encoding="utf-8"))
    return int(metrics["best_epoch"])


def result_title(summary: dict[str, Any]) -> str:
    """Return model, graph, protocol and mean score of a run folder as one line."""
    metric = find_metric(summary.get("metric", "accuracy"))
    key = f"test_{metric.name}"
    score = summary[key] if key in summary else summary[f"unobserved_{metric.name}"]
    model = summary["config"]["model"]
    name = plain(summary["dataset"])
    value = metric.shown_interval(score, 1)
    if metric.name != "accuracy":
        value = f"{metric.title} {value}"
    title = f"{model} on {name} ({summary['protocol']}): {value}"
    dead = len(summary.get("dead_seeds", []))
    if dead:
        title += f" ({dead} of {len(summary['seeds'])} runs never rose above chance)"
    return title


def draw_run(content: RunFigureData, path: Path) -> None:
    """Draw the figure to a file, whose extension selects the format."""
    with canvas() as plt:
        has_filters = len(content.responses) > 0
        figure, axes = panels(plt, 2 if has_filters else 1, width=4.2, height=3.2)
        _draw_curves(axes[0, 0], content)
        if has_filters:
            _draw_responses(figure, axes[0, 1], content)
        figure.suptitle(content.title)
        image = io.BytesIO()
        figure.savefig(image, format=path.suffix.removeprefix("."))
        atomic_write(path, image.getvalue())


def _draw_curves(ax: Any, content: RunFigureData) -> None:
    runs = len(content.curves)
    alpha = max(0.25, 1 / runs**0.5)
    for curve, best in zip(content.curves, content.best_epochs):
        epoch = curve["epoch"]
        loss = curve["val_loss"]
        ax.plot(epoch, curve["train_loss"], color=COLOURS[0], alpha=alpha, lw=1)
        ax.plot(epoch, loss, color=COLOURS[1], alpha=alpha, lw=1)
        ax.plot(best, loss[best], "o", color=COLOURS[1], ms=4)
    noun = "run" if runs == 1 else "runs"
    ax.set(xlabel="epoch", ylabel="loss", ylim=(0, None), title=f"Learning curves, {runs} {noun}")
    # Without a location, Matplotlib chooses the best one, too, but warns if that takes a second.
    ax.legend(ax.lines[:3], ("training", "validation", "best epoch"), loc="best")


def _draw_responses(figure: Any, ax: Any, content: RunFigureData) -> None:
    import matplotlib as mpl

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
    ax.plot(content.frequencies, mean, color="black", lw=1, ls="--", label="mean of all nodes")
    ax.set(xlabel="frequency λ", ylabel="response", title=f"Learned filters of {count} nodes")
    ax.legend(loc="best")
    scale = mpl.cm.ScalarMappable(mpl.colors.Normalize(0, 1), colours)
    figure.colorbar(scale, ax=ax, label="neighbours of the same class")
