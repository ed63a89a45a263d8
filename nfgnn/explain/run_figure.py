"""The picture at the end of a training: learning curves, and the filters that the nodes have learned."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nfgnn.explain.figure_style import COLOURS, canvas
from nfgnn.spectral import resolve_basis
from nfgnn.training.run_folder import read_summary

_MOST_NODES = 20_000  # more would only cost memory: a picture shows 150 of them


@dataclass(frozen=True)
class RunRows:
    """What is drawn, as plain numbers."""

    title: str
    curves: list[dict[str, np.ndarray]]
    """One learning curve per seed: columns of ``history.csv``."""
    best_epochs: list[int]
    frequencies: np.ndarray
    """λ at which responses are given."""
    responses: np.ndarray
    """Frequency responses of the nodes of the first seed, ``[n, points]``; empty where the model has no filter."""
    homophily: np.ndarray
    """Share of neighbours of the same class, per node; NaN where there is none."""


def run_rows(run: Path, homophily: np.ndarray, points: int = 101) -> RunRows:
    """Read a run folder."""
    summary = read_summary(run)
    seeds = [run / f"seed-{seed}" for seed in summary["seeds"]]
    curves = [_columns(seed / "history.csv") for seed in seeds]
    t = torch.linspace(-1, 1, points, dtype=torch.float64)
    config = summary["config"]
    responses = np.empty((0, points))
    if (seeds[0] / "coefficients.npy").is_file():
        psi = np.load(seeds[0] / "coefficients.npy", mmap_mode="r", allow_pickle=False)
        every = max(1, len(psi) // _MOST_NODES)
        psi, homophily = psi[::every], homophily[::every]
        basis = resolve_basis(summary["filter"]["basis"])
        responses = psi @ basis.evaluate(t, psi.shape[1] - 1).numpy().T
    lambda_max = summary["filter"]["lambda_max"] if summary["filter"] else 2.0
    score = summary.get("test_accuracy") or summary["unobserved_accuracy"]
    interval = f" ± {100 * score['ci95']:.1f}" if score["ci95"] is not None else ""
    title = f"{config['model']} on {summary['dataset']} ({summary['protocol']}): {100 * score['mean']:.1f}{interval} %"
    best = [int(np.argmin(curve["val_loss"])) for curve in curves]
    return RunRows(title, curves, best, (t.numpy() + 1) * lambda_max / 2, responses, homophily)


def draw_run(rows: RunRows, path: Path) -> None:
    """Draw to a file; its ending decides the format."""
    with canvas() as plt:
        panels = 2 if len(rows.responses) else 1
        figure, axes = plt.subplots(
            1, panels, figsize=(4.2 * panels, 3.2), squeeze=False, layout="constrained"
        )
        _draw_curves(axes[0, 0], rows)
        if panels == 2:
            _draw_responses(figure, axes[0, 1], rows)
        figure.suptitle(rows.title)
        figure.savefig(path)


def _draw_curves(ax: Any, rows: RunRows) -> None:
    for i, (curve, best) in enumerate(zip(rows.curves, rows.best_epochs)):
        alpha = max(0.25, 1 / len(rows.curves) ** 0.5)
        for j, (key, label) in enumerate((("train_loss", "training"), ("val_loss", "validation"))):
            ax.plot(
                curve["epoch"],
                curve[key],
                color=COLOURS[j],
                alpha=alpha,
                lw=1,
                label=None if i else label,
            )
        ax.plot(
            best, curve["val_loss"][best], "o", color=COLOURS[1], ms=4, label=None if i else "kept"
        )
    ax.set(
        xlabel="epoch",
        ylabel="loss",
        ylim=(0, None),
        title=f"Learning curves, {len(rows.curves)} runs",
    )
    ax.legend()


def _draw_responses(figure: Any, ax: Any, rows: RunRows, most: int = 150) -> None:
    import matplotlib as mpl

    nodes = np.linspace(0, len(rows.responses) - 1, min(most, len(rows.responses))).astype(int)
    nodes = nodes[
        np.argsort(np.abs(np.nan_to_num(rows.homophily[nodes], nan=0.5) - 0.5), kind="stable")
    ]
    colours = mpl.colormaps["viridis"]
    for node in nodes:
        h = rows.homophily[node]
        ax.plot(
            rows.frequencies,
            rows.responses[node],
            color="0.7" if np.isnan(h) else colours(h),
            lw=0.6,
            alpha=0.5,
        )
    ax.plot(
        rows.frequencies,
        rows.responses.mean(0),
        color="black",
        lw=1,
        ls="--",
        label="mean of all nodes",
    )
    ax.set(xlabel="frequency λ", ylabel="response", title=f"Learned filters of {len(nodes)} nodes")
    ax.legend()
    scale = mpl.cm.ScalarMappable(mpl.colors.Normalize(0, 1), colours)
    figure.colorbar(scale, ax=ax, label="neighbours of the same class")


def _columns(path: Path) -> dict[str, np.ndarray]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}
