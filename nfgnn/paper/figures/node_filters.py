"""Filters of single nodes from the paper's low-pass, band-pass and high-pass subsets, rank 3 (the paper's Figure 9)."""

from collections.abc import Sequence
from typing import Any

import torch

from nfgnn.analysis import centre_frequency, filter_subsets, frequency_response, local_homophily
from nfgnn.explain import canvas, panels, title
from nfgnn.paper.lab import FIRST_SEED, Lab

DATASETS = ("cora", "texas", "chameleon", "actor")
NODES = 3
RANK = 3
_COLOURS = {"low-pass": "#009E73", "band-pass": "#0072B2", "high-pass": "#D55E00"}
_DASHES = {"low-pass": "-", "band-pass": "--", "high-pass": "-."}


def rows(lab: Lab, datasets: Sequence[str]) -> dict[str, Any]:
    """Three random nodes of every subset and the responses of their filters in the first run."""
    return {"graphs": [_row(lab, name) for name in datasets], "rank": RANK}


def _row(lab: Lab, name: str) -> dict[str, Any]:
    data, fit = lab.graph(name), lab.fits(name, "NFGNN", runs=1, rank=RANK)[0]
    assert fit.coefficients is not None
    subsets = filter_subsets(*(local_homophily(data.edge_index, data.y, hops) for hops in (1, 2)))
    frequencies, curves = frequency_response(fit.coefficients, fit.basis, points=101)
    generator = torch.Generator().manual_seed(FIRST_SEED)
    found: dict[str, Any] = {}
    for subset, mask in subsets.items():
        nodes = mask.nonzero().flatten()
        chosen = nodes[torch.randperm(len(nodes), generator=generator)[:NODES]]
        found[subset] = {
            "size": len(nodes),
            "nodes": chosen.tolist(),
            "curves": [[round(value, 5) for value in curve] for curve in curves[chosen].tolist()],
            "mean_centre": float(centre_frequency(frequencies, curves[nodes]).mean())
            if len(nodes)
            else None,
        }
    return {
        "name": name,
        "frequencies": [round(f, 5) for f in frequencies.tolist()],
        "subsets": found,
    }


def draw(rows: dict[str, Any]) -> Any:
    """One panel per graph, one colour per subset; the legend says how many nodes it has."""
    with canvas() as plt:
        figure, axes = panels(plt, len(rows["graphs"]), width=2.8, height=2.7)
        for ax, graph in zip(axes[0], rows["graphs"]):
            for subset, found in graph["subsets"].items():
                for i, curve in enumerate(
                    found["curves"] or [[float("nan")] * len(graph["frequencies"])]
                ):
                    label = f"{subset} ({found['size']} nodes)" if i == 0 else None
                    style = {"color": _COLOURS[subset], "ls": _DASHES[subset], "lw": 1.2}
                    ax.plot(graph["frequencies"], curve, label=label, **style)
            ax.set(xlabel="frequency λ", title=title(graph["name"]), xlim=(0, 2))
            ax.legend(fontsize=6)
        axes[0, 0].set_ylabel("response")
    return figure
