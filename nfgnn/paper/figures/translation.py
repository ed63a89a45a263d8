"""A kernel translated to a node: what it looks like around the node, and that it ends after K hops."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nfgnn.analysis import energy_by_hop, hop_distance, translate
from nfgnn.explain import COLOURS, canvas, panels, title
from nfgnn.paper.lab import Lab
from nfgnn.spectral.response import high_pass, low_pass

DATASETS = ("cora",)
KERNELS = {"low-pass": low_pass, "high-pass": high_pass}
DEGREE = 2
HOPS = 4
_MOST = 150


def rows(lab: Lab, datasets: Sequence[str]) -> dict[str, Any]:
    """Both kernels around one node of every graph."""
    return {"graphs": [_row(name, lab.graph(name)) for name in datasets]}


def _row(name: str, data: Any) -> dict[str, Any]:
    n = int(data.num_nodes)
    node, distance = _centre(data.edge_index, n)
    around = ((distance >= 0) & (distance <= HOPS)).nonzero().flatten()
    links = [
        [a, b]
        for a, b in data.edge_index.T.tolist()
        if a < b and bool(distance[[a, b]].le(HOPS).all())
    ]
    near = set(around.tolist())
    kernels: dict[str, Any] = {}
    for kernel, response in KERNELS.items():
        signal = translate(data.edge_index, torch.tensor([node]), response, DEGREE, n)[
            :, 0
        ] / math.sqrt(n)
        energy = energy_by_hop(signal, distance, HOPS)
        kernels[kernel] = {"values": signal[around].tolist(), "energy": energy.tolist()}
    return {
        "name": name,
        "node": node,
        "K": DEGREE,
        "nodes": around.tolist(),
        "distance": distance[around].tolist(),
        "links": [link for link in links if link[0] in near and link[1] in near],
        "kernels": kernels,
    }


def _centre(edge_index: Tensor, n: int) -> tuple[int, Tensor]:
    """The first node with 3 links or more whose neighbourhood reaches ``HOPS`` hops and is small enough to draw."""
    degree = torch.bincount(edge_index[0], minlength=n)
    best = (n + 1, 0, torch.empty(0))
    for node in ((degree >= 3) & (degree <= 8)).nonzero().flatten().tolist()[:200]:
        distance = hop_distance(edge_index, node, n)
        size = int(((distance >= 0) & (distance <= HOPS)).sum())
        if int(distance.max()) >= HOPS and 40 <= size <= _MOST:
            return node, distance
        if size < best[0]:
            best = (size, node, distance)
    return best[1], hop_distance(edge_index, best[1], n)


def draw(rows: dict[str, Any]) -> Any:
    """Two maps of the neighbourhood and the share of energy by distance, per graph."""
    with canvas() as plt:
        figure, axes = panels(plt, 3, rows=len(rows["graphs"]), width=3.2, height=3.0)
        for line, graph in zip(axes, rows["graphs"]):
            place = _radial_layout(graph)
            for ax, (name, kernel) in zip(line, graph["kernels"].items()):
                _draw_map(figure, ax, graph, place, kernel["values"])
                ax.set_title(f"{name}, K = {graph['K']}, {title(graph['name'])}")
            for i, (name, kernel) in enumerate(graph["kernels"].items()):
                hops = np.arange(len(kernel["energy"]))
                line[2].bar(
                    hops + (i - 0.5) * 0.4, kernel["energy"], 0.4, label=name, color=COLOURS[i]
                )
            line[2].set(
                xlabel="hops from the centre", ylabel="share of energy", title="localisation"
            )
            line[2].legend(fontsize=7)
    return figure


def _draw_map(
    figure: Any, ax: Any, graph: dict[str, Any], place: dict[int, tuple[float, float]], values: Any
) -> None:
    for a, b in graph["links"]:
        ax.plot(*zip(place[a], place[b]), color="0.8", lw=0.5, zorder=1)
    top = max(abs(value) for value in values)
    x, y = zip(*(place[node] for node in graph["nodes"]))
    zero = [value == 0 for value in values]
    size = [8 if none else 30 for none in zero]
    points = ax.scatter(
        x, y, c=values, s=size, cmap="PuOr", vmin=-top, vmax=top, ec="0.4", lw=0.4, zorder=2
    )
    figure.colorbar(points, ax=ax, shrink=0.7)
    ax.set_axis_off()
    ax.set_aspect("equal")


def _radial_layout(graph: dict[str, Any]) -> dict[int, tuple[float, float]]:
    """Nodes on circles by their distance; every subtree of the breadth-first tree has its own sector."""
    distance = dict(zip(graph["nodes"], graph["distance"]))
    links: dict[int, list[int]] = {node: [] for node in distance}
    for a, b in graph["links"]:
        links[a].append(b)
        links[b].append(a)
    children: dict[int, list[int]] = {node: [] for node in distance}
    for node in sorted(distance, key=lambda v: (distance[v], v)):
        if distance[node]:
            parents = (v for v in links[node] if distance[v] == distance[node] - 1)
            children[min(parents, key=lambda v: (len(children[v]), v))].append(node)
    leaves: dict[int, int] = {}
    for node in sorted(distance, key=lambda v: -distance[v]):
        leaves[node] = max(1, sum(leaves[child] for child in children[node]))
    place: dict[int, tuple[float, float]] = {}
    sectors = {graph["node"]: (0.0, 2 * math.pi)}
    for node in sorted(distance, key=lambda v: distance[v]):
        start, stop = sectors[node]
        angle = (start + stop) / 2
        place[node] = (distance[node] * math.cos(angle), distance[node] * math.sin(angle))
        for child in children[node]:
            end = (
                start + (stop - start) * leaves[child] / leaves[node]
                if len(children[node]) > 1
                else stop
            )
            sectors[child] = (start, end)
            start = end
    return place
