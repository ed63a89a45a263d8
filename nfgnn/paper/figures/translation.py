"""A kernel translated to a node: its values around the node, and that it ends after K hops."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.analysis import energy_by_hop, hop_distance, translate
from nfgnn.explain import COLOURS, canvas, headline, panels, percent, title
from nfgnn.paper.trained_models import TrainedModels
from nfgnn.spectral.response import high_pass, low_pass

DATASETS = ("cora",)
KERNELS = {"low-pass": low_pass, "high-pass": high_pass}
DEGREE = 2
HOPS = 4
_DRAWABLE = range(40, 151)  # nodes around the centre
Positions = dict[int, tuple[float, float]]


def rows(models: TrainedModels, datasets: Sequence[str]) -> dict[str, Any]:
    """Return both kernels around one node of every graph."""
    return {"graphs": [_row(name, models.graph(name)) for name in datasets]}


def _row(name: str, data: Data) -> dict[str, Any]:
    num_nodes = int(data.num_nodes)
    node, distance = _choose_centre(data.edge_index, num_nodes)
    inside = (distance >= 0) & (distance <= HOPS)
    nodes = inside.nonzero().flatten()
    sources, targets = data.edge_index
    kept = (sources < targets) & inside[sources] & inside[targets]
    kernels: dict[str, Any] = {}
    for kernel, response in KERNELS.items():
        translated = translate(data.edge_index, torch.tensor([node]), response, DEGREE, num_nodes)
        signal = translated[:, 0] / math.sqrt(num_nodes)
        energy = energy_by_hop(signal, distance, HOPS)
        kernels[kernel] = {"values": signal[nodes].tolist(), "energy": energy.tolist()}
    return {
        "name": name,
        "node": node,
        "K": DEGREE,
        "nodes": nodes.tolist(),
        "distance": distance[nodes].tolist(),
        "links": data.edge_index.T[kept].tolist(),
        "kernels": kernels,
    }


def _choose_centre(edge_index: Tensor, num_nodes: int) -> tuple[int, Tensor]:
    """Return a node whose neighbourhood is deep and small enough to draw, and all distances.

    It is the first node of degree 3 to 8 with a suitable neighbourhood, else the one with the
    smallest.
    """
    degree = torch.bincount(edge_index[0], minlength=num_nodes)
    suitable = (degree >= 3) & (degree <= 8)
    candidates = suitable.nonzero().flatten().tolist()[:200]
    smallest = num_nodes + 1
    best = 0
    for node in candidates:
        distance = hop_distance(edge_index, node, num_nodes)
        size = int(((distance >= 0) & (distance <= HOPS)).sum())
        if int(distance.max()) >= HOPS and size in _DRAWABLE:
            return node, distance
        if size < smallest:
            smallest = size
            best = node
    return best, hop_distance(edge_index, best, num_nodes)


def draw(rows: dict[str, Any]) -> Any:
    """Draw two maps of the neighbourhood and the share of energy by distance, per graph."""
    with canvas() as plt:
        figure, axes = panels(plt, 3, rows=len(rows["graphs"]), width=3.2, height=3.0)
        for line, graph in zip(axes, rows["graphs"]):
            positions = radial_layout(graph)
            for i, (name, kernel) in enumerate(graph["kernels"].items()):
                _draw_map(figure, line[i], graph, positions, kernel["values"])
                line[i].set_title(f"{name}, a node of {title(graph['name'])}")
                x = np.arange(len(kernel["energy"])) + (i - 0.5) * 0.4
                line[2].bar(x, kernel["energy"], 0.4, label=name, color=COLOURS[i])
            line[2].set(xlabel="hops from the centre", ylabel="share of energy")
            line[2].set_title(f"{percent(_share_within(graph))} within {graph['K']} hops")
            line[2].legend(loc="best")
        headline(figure, _finding(rows["graphs"]))
    return figure


def _share_within(graph: dict[str, Any]) -> float:
    """Return the share of energy within K hops, the smallest of the kernels."""
    kernels = graph["kernels"].values()
    return float(min(sum(kernel["energy"][: graph["K"] + 1]) for kernel in kernels))


def _finding(graphs: list[dict[str, Any]]) -> str:
    K = graphs[0]["K"]
    share = min(_share_within(graph) for graph in graphs)
    return f"A filter of degree {K} sees {K} hops: they hold {percent(share)} of its energy"


def _draw_map(
    figure: Any, ax: Any, graph: dict[str, Any], positions: Positions, values: list[float]
) -> None:
    for a, b in graph["links"]:
        x, y = zip(positions[a], positions[b])
        ax.plot(x, y, color="0.8", lw=0.5, zorder=1)
    largest = max(abs(value) for value in values)
    x, y = zip(*(positions[node] for node in graph["nodes"]))
    points = ax.scatter(
        x,
        y,
        c=values,
        s=[30 if value else 8 for value in values],
        cmap="PuOr",
        vmin=-largest,
        vmax=largest,
        ec="0.4",
        lw=0.4,
        zorder=2,
    )
    figure.colorbar(points, ax=ax, shrink=0.7)
    ax.set_axis_off()
    ax.set_aspect("equal")


def radial_layout(graph: dict[str, Any]) -> Positions:
    """Place nodes on circles by their distance from the centre.

    Every subtree of a breadth-first tree has a sector of its own, as wide as its leaves need.
    """
    distance = dict(zip(graph["nodes"], graph["distance"]))
    outwards = sorted(distance, key=lambda node: (distance[node], node))
    children = _breadth_first_tree(graph["links"], distance, outwards)
    leaves: dict[int, int] = {}
    for node in reversed(outwards):
        leaves[node] = max(1, sum(leaves[child] for child in children[node]))
    positions: Positions = {}
    sectors = {graph["node"]: (0.0, 2 * math.pi)}
    for node in sorted(distance, key=lambda node: distance[node]):
        start, stop = sectors[node]
        angle = (start + stop) / 2
        radius = distance[node]
        positions[node] = (radius * math.cos(angle), radius * math.sin(angle))
        for child in children[node]:
            end = stop
            if len(children[node]) > 1:
                end = start + (stop - start) * leaves[child] / leaves[node]
            sectors[child] = (start, end)
            start = end
    return positions


def _breadth_first_tree(
    edges: list[list[int]], distance: dict[int, int], outwards: list[int]
) -> dict[int, list[int]]:
    """Return the children of every node. A node joins the parent with the fewest children."""
    neighbours: dict[int, list[int]] = {node: [] for node in distance}
    for a, b in edges:
        neighbours[a].append(b)
        neighbours[b].append(a)
    children: dict[int, list[int]] = {node: [] for node in distance}
    for node in outwards:
        if distance[node]:
            parents = [v for v in neighbours[node] if distance[v] == distance[node] - 1]
            parent = min(parents, key=lambda v: (len(children[v]), v))
            children[parent].append(node)
    return children
