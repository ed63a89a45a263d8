"""Draw the figures of the README and of ``docs/speed.md``, each for light and dark pages.

    python benchmarks/readme_figures.py [idea] [speed] [growth]

``idea``: two neighbourhoods, the filters that NFGNN learns on the built-in graph, and what they
bring there (``results/mixed_patterns.md``). ``speed``: milliseconds per epoch, from
``benchmarks/results/epochs_cpu.json`` and ``epochs_cuda.json``. ``growth``: time and memory by the
size of the graph, from ``growth_cuda.json`` and ``precompute_large.md`` there. All of them go to
``docs/images``.
"""

import json
import math
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.analysis import local_homophily
from nfgnn.explain import COLOURS, INK, MUTED, canvas, headline, save

REPOSITORY = Path(__file__).parents[1]
IMAGES = REPOSITORY / "docs" / "images"
BENCHMARKS = REPOSITORY / "benchmarks" / "results"
SETTINGS = {"gate": "agreement", "rank": 3, "K": 10, "basis": "chebyshev"}
GRAPHS = {
    "texas": "Texas",
    "cora": "Cora",
    "citeseer": "CiteSeer",
    "squirrel": "Squirrel",
    "computers": "Computers",
}
CURVES = 120


class Picture(NamedTuple):
    """A figure: its size in inches, its number of panels and the function that fills them."""

    size: tuple[float, float]
    panels: int
    draw: Callable[[Any, Any], None]


def main() -> None:
    pictures = {
        "idea": Picture((9.2, 2.9), 3, draw_idea),
        "speed": Picture((8.6, 3.0), 2, draw_speed),
        "growth": Picture((9.2, 3.0), 3, draw_growth),
    }
    for name in sys.argv[1:] or pictures:
        picture = pictures[name]
        for variant in ("light", "dark"):
            with canvas(variant) as plt:
                figure, axes = plt.subplots(
                    1, picture.panels, figsize=picture.size, layout="constrained"
                )
                picture.draw(figure, axes)
                for path in save(figure, IMAGES, f"{name}-{variant}", ("png",), transparent=True):
                    print(path.relative_to(REPOSITORY))


@cache
def learned_filters() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return frequencies, the responses of some nodes and their local homophily."""
    torch.set_num_threads(1)
    data = split(load_dataset("mixed"), protocol="full", seed=0)
    classifier = NodeClassifier("NFGNN", seed=0, **SETTINGS).fit(data)
    nodes = torch.linspace(0, data.num_nodes - 1, CURVES).long()
    frequencies, curves = classifier.response(data, nodes=nodes.tolist())
    homophily = local_homophily(data.edge_index, data.y)[nodes]
    return frequencies.numpy(), curves.numpy(), homophily.numpy()


def draw_idea(figure: Any, axes: Any) -> None:
    draw_neighbourhoods(axes[0])
    draw_filters(axes[1], *learned_filters())
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
            ax.plot((centre, x), (0, y), color=MUTED, lw=1.2, zorder=1)
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
    # A background keeps the lines of the grid out of the text.
    ax.legend(loc="best", frameon=True, framealpha=1, edgecolor="none")


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
    means = {name: float(mean) for name, (mean, _) in values.items()}
    for place, name in enumerate(names):
        error = float(values[name][1])
        colour = COLOURS[1] if name == "NFGNN, agreement" else MUTED
        ax.bar(place, means[name], color=colour, yerr=error, ecolor=ax.title.get_color())
        # Black text is readable on both colours of the bars.
        ax.text(place, 3, f"{means[name]:.0f}", ha="center", va="bottom", color=INK, weight="bold")
    ax.set_xticks(range(len(names)), list(names.values()))
    ax.grid(visible=False, axis="x")
    gain = means["NFGNN, agreement"] - means["one global filter"]
    title = f"{gain:+.0f} points for unlike neighbours"
    ax.set(ylabel="test accuracy, %", title=title, ylim=(0, 100))


def draw_speed(figure: Any, axes: Any) -> None:
    """Draw milliseconds per epoch of plain message passing and of nfgnn."""
    machines = {"cpu": "CPU, one thread", "cuda": "NVIDIA H200"}
    all_ratios = []
    for ax, (device, caption) in zip(axes, machines.items()):
        content = json.loads((BENCHMARKS / f"epochs_{device}.json").read_text(encoding="utf-8"))
        times = {row["graph"]: row["ms"] for row in content["rows"]}
        plain = np.array([times[graph]["(a) plain NFGNN"] for graph in GRAPHS])
        ours = np.array([times[graph]["NFGNN"] for graph in GRAPHS])
        ratios = plain / ours
        all_ratios.extend(ratios)
        places = np.arange(len(GRAPHS))
        ax.bar(places - 0.2, plain, 0.38, color=MUTED, label="plain message passing")
        ax.bar(places + 0.2, ours, 0.38, color=COLOURS[0], label="nfgnn")
        for place, height, ratio in zip(places, plain, ratios):
            ax.text(place, height * 1.15, f"{ratio:.0f} ×", ha="center", va="bottom")
        ax.set_yscale("log")
        # Bars start at a power of ten, and end below the ratios and the legend.
        bottom = 10 ** math.floor(math.log10(ours.min()))
        ax.set_ylim(bottom, plain.max() * 5)
        ax.set_xticks(places, list(GRAPHS.values()))
        ax.grid(visible=False, axis="x")
        title = f"{caption}: {ratios.min():.0f} to {ratios.max():.0f} × as fast"
        ax.set(ylabel="ms per epoch (log scale)", title=title)
    axes[0].legend(loc="upper left")
    finding = (
        f"nfgnn trains {min(all_ratios):.0f} to {max(all_ratios):.0f} times as fast as plain "
        "message passing"
    )
    headline(figure, finding)


def draw_growth(figure: Any, axes: Any) -> None:
    """Draw the time of an epoch, and time and memory of ``nfgnn precompute``, by size."""
    draw_epoch_growth(axes[0])
    stores, budget = _precompute_rows()
    nodes = np.array([row["nodes"] for row in stores])
    seconds = np.array([row["all: s"] for row in stores])
    memory = np.array([row["peak memory: GB"] for row in stores])
    axes[1].plot(nodes, seconds, "o-", color=COLOURS[0])
    axes[1].set(xscale="log", yscale="log", xlabel="nodes", ylabel="seconds (log scale)")
    axes[1].set_title(f"Precompute: {nodes[-1] / 1e6:.0f} M nodes in {seconds[-1]:.0f} s")
    axes[1].set_yticks((10, 30, 100, 300), ("10", "30", "100", "300"), minor=False)
    axes[1].yaxis.set_minor_formatter("")
    axes[2].axhline(budget, color=MUTED, ls="--", label=f"budget, {budget:.0f} GB")
    axes[2].plot(nodes, memory, "o-", color=COLOURS[0], label="peak memory")
    axes[2].set(xscale="log", xlabel="nodes", ylabel="GB", ylim=(0, 1.15 * budget))
    axes[2].set_title(f"Precompute: at most {memory.max():.1f} GB")
    axes[2].legend(loc="lower right")
    kept = "within" if memory.max() <= budget else "beyond"
    finding = (
        f"{nodes[-1] / nodes[0]:.0f} times the nodes take {seconds[-1] / seconds[0]:.0f} times the "
        f"time to precompute, {kept} the memory budget"
    )
    headline(figure, finding)


def draw_epoch_growth(ax: Any) -> None:
    """Draw milliseconds per epoch by the number of nodes and of edges."""
    content = json.loads((BENCHMARKS / "growth_cuda.json").read_text(encoding="utf-8"))
    title = ""
    for varied, colour, marker in (("nodes", COLOURS[0], "o"), ("edges", COLOURS[1], "s")):
        rows = [row for row in content["growth"] if row["varied"] == varied]
        sizes = [row[varied] for row in rows]
        times = [row["ms"] for row in rows]
        ax.plot(sizes, times, f"{marker}-", color=colour, label=f"more {varied}")
        if varied == "nodes":
            title = f"{sizes[-1] / sizes[0]:.0f} × nodes: {times[-1] / times[0]:.1f} × time"
    ax.set(xscale="log", yscale="log", xlabel="nodes or directed edges")
    ax.set(ylabel="ms per epoch (log scale)", title=f"Epoch on an H200: {title}")
    ax.set_yticks((0.3, 1, 3), ("0.3", "1", "3"), minor=False)
    ax.yaxis.set_minor_formatter("")
    ax.legend(loc="best")


def _precompute_rows() -> tuple[list[dict[str, float]], float]:
    """Return the first table of ``precompute_large.md``, and its memory budget in GB."""
    text = (BENCHMARKS / "precompute_large.md").read_text(encoding="utf-8")
    head, _, *lines = _table_rows(text.partition("The ten-million row")[0])
    rows = []
    for line in lines:
        cells = dict(zip(head, line))
        names = ("nodes", "all: s", "peak memory: GB")
        rows.append({name: float(cells[name].replace(",", "")) for name in names})
    budget = re.search(r"--memory (\d+)GB", text)
    assert budget is not None
    return rows, float(budget[1])


def _table_rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


if __name__ == "__main__":
    main()
