"""Draw the two pictures of the README, each in a light and a dark variant.

    python benchmarks/readme_figures.py

``idea``: two neighbourhoods, the filters that NFGNN learns on the built-in graph, and what they
bring there (``results/mixed_patterns.json``). ``speed``: milliseconds per epoch, from
``benchmarks/results/epochs_cpu.json`` and ``epochs_cuda.json``. Both go to ``docs/images``.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.analysis import local_homophily
from nfgnn.explain import COLOURS, canvas, save

REPOSITORY = Path(__file__).parents[1]
IMAGES = REPOSITORY / "docs" / "images"
BENCHMARKS = REPOSITORY / "benchmarks" / "results"
VARIANTS = {"light": "#1f2328", "dark": "#e6edf3"}
"""Colour of text and axes on a page of this kind."""
SETTINGS = {"gate": "agreement", "rank": 3, "K": 10, "basis": "chebyshev"}
GRAPHS = {
    "texas": "Texas",
    "cora": "Cora",
    "citeseer": "CiteSeer",
    "squirrel": "Squirrel",
    "computers": "Computers",
}
CURVES = 120


def main() -> None:
    filters = learned_filters()
    for variant, ink in VARIANTS.items():
        draw("idea", variant, ink, (9.2, 2.9), 3, lambda axes: draw_idea(axes, filters))
        draw("speed", variant, ink, (8.6, 2.7), 2, draw_speed)


def draw(
    name: str, variant: str, ink: str, size: tuple[float, float], count: int, content: Any
) -> None:
    with canvas() as plt:
        colours = ("text.color", "xtick.color", "ytick.color", "axes.labelcolor", "axes.edgecolor")
        plt.rcParams.update(dict.fromkeys((*colours, "axes.titlecolor", "grid.color"), ink))
        plt.rcParams["savefig.transparent"] = True
        figure, axes = plt.subplots(1, count, figsize=size, layout="constrained")
        content(axes)
        for path in save(figure, IMAGES, f"{name}-{variant}", ("png",)):
            print(path.relative_to(REPOSITORY))


def learned_filters() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return frequencies, the responses of some nodes and their local homophily."""
    torch.set_num_threads(1)
    data = split(load_dataset("mixed"), protocol="full", seed=0)
    classifier = NodeClassifier("NFGNN", seed=0, **SETTINGS).fit(data)
    nodes = torch.linspace(0, data.num_nodes - 1, CURVES).long()
    frequencies, curves = classifier.response(data, nodes=nodes.tolist())
    homophily = local_homophily(data.edge_index, data.y)[nodes]
    return frequencies.numpy(), curves.numpy(), homophily.numpy()


def draw_idea(axes: Any, filters: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    draw_neighbourhoods(axes[0])
    draw_filters(axes[1], *filters)
    draw_accuracy(axes[2])


def draw_neighbourhoods(ax: Any) -> None:
    """Draw a node among nodes of its class beside a node among others."""
    for centre, same, caption in (
        (0.0, True, "like neighbours"),
        (3.0, False, "unlike neighbours"),
    ):
        for i in range(5):
            angle = 2 * math.pi * i / 5 + math.pi / 2
            x = centre + 0.95 * math.cos(angle)
            y = 0.95 * math.sin(angle)
            ax.plot((centre, x), (0, y), color="0.55", lw=1.2, zorder=1)
            ax.scatter(x, y, s=110, color=COLOURS[0] if same else COLOURS[1 + i % 2], zorder=2)
        ax.scatter(centre, 0, s=190, color=COLOURS[0], zorder=3)
        ax.text(centre, -1.6, caption, ha="center", va="center")
    ax.set(xlim=(-1.4, 4.4), ylim=(-2.0, 1.5), title="One graph, two local patterns")
    ax.set_aspect("equal")
    ax.axis("off")


def draw_filters(
    ax: Any, frequencies: np.ndarray, curves: np.ndarray, homophily: np.ndarray
) -> None:
    """Draw the responses of single nodes, coloured by their local pattern."""
    for curve, h in zip(curves, homophily):
        ax.plot(frequencies, curve, color=COLOURS[0] if h > 0.5 else COLOURS[1], lw=0.6, alpha=0.4)
    ax.plot([], [], color=COLOURS[0], label="like neighbours")
    ax.plot([], [], color=COLOURS[1], label="unlike neighbours")
    ax.set(xlabel="frequency λ", ylabel="response", title="Each node learns its own filter")
    ax.legend(loc="best")


def draw_accuracy(ax: Any) -> None:
    """Draw the accuracy on nodes with unlike neighbours."""
    names = {
        "MLP": "MLP",
        "one global filter": "one\nfilter",
        "NFGNN, agreement": "one per\nnode",
        "oracle": "oracle",
    }
    rows = _table_rows((REPOSITORY / "results" / "mixed_patterns.md").read_text(encoding="utf-8"))
    values = {row[0]: row[3].split(" ± ") for row in rows[:7] if row[0] in names}
    for place, name in enumerate(names):
        mean, error = (float(value) for value in values[name])
        colour = COLOURS[1] if name == "NFGNN, agreement" else "0.6"
        ax.bar(place, mean, color=colour, yerr=error, error_kw={"ecolor": "0.35", "capsize": 3})
        ax.text(place, 3, f"{mean:.0f}", ha="center", va="bottom", color="white", weight="bold")
    ax.set_xticks(range(len(names)), list(names.values()))
    ax.grid(visible=False, axis="x")
    ax.set(ylabel="test accuracy, %", title="Nodes with unlike neighbours", ylim=(0, 100))


def draw_speed(axes: Any) -> None:
    """Draw milliseconds per epoch of plain message passing and of nfgnn."""
    machines = (("cpu", "CPU, one thread", (1, 3000)), ("cuda", "NVIDIA H200", (0.1, 60)))
    for ax, (device, caption, limits) in zip(axes, machines):
        content = json.loads((BENCHMARKS / f"epochs_{device}.json").read_text(encoding="utf-8"))
        times = {row["graph"]: row["ms"] for row in content["rows"]}
        for place, graph in enumerate(GRAPHS):
            plain = times[graph]["(a) plain NFGNN"]
            ours = times[graph]["NFGNN"]
            ax.bar(place - 0.2, plain, 0.38, color="0.6")
            ax.bar(place + 0.2, ours, 0.38, color=COLOURS[0])
            ax.text(place, plain * 1.15, f"{plain / ours:.0f} ×", ha="center", va="bottom")
        ax.bar(0, 0, color="0.6", label="plain message passing")
        ax.bar(0, 0, color=COLOURS[0], label="nfgnn")
        ax.set_yscale("log")
        ax.set_ylim(limits)
        ax.set_xticks(range(len(GRAPHS)), list(GRAPHS.values()))
        ax.grid(visible=False, axis="x")
        ax.set(ylabel="ms per epoch (log scale)", title=caption)
    axes[0].legend(loc="upper left")


def _table_rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


if __name__ == "__main__":
    main()
