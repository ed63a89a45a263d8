"""Filters of single low-pass, band-pass and high-pass nodes, rank 3 (Figure 9)."""

from collections.abc import Sequence
from typing import Any

import torch

from nfgnn.analysis import centre_frequency, filter_subsets, frequency_response, local_homophily
from nfgnn.explain import canvas, headline, panels, title
from nfgnn.paper.figures.shared import rounded
from nfgnn.paper.table_plan import FIRST_REPORT_SEED
from nfgnn.paper.trained_models import TrainedModels

DATASETS = ("cora", "texas", "chameleon", "actor")
NODES = 3
RANK = 3
_CLEAR_DIFFERENCE = 0.2
_COLOURS = {"low-pass": "#009E73", "band-pass": "#0072B2", "high-pass": "#D55E00"}
_LINE_STYLES = {"low-pass": "-", "band-pass": "--", "high-pass": "-."}


def rows(models: TrainedModels, datasets: Sequence[str]) -> dict[str, Any]:
    """Return three random nodes of every subset and the responses of their filters."""
    return {"graphs": [_row(models, name) for name in datasets], "rank": RANK}


def _row(models: TrainedModels, name: str) -> dict[str, Any]:
    data = models.graph(name)
    fit = models.fits(name, "NFGNN", runs=1, rank=RANK)[0]
    assert fit.coefficients is not None
    one_hop = local_homophily(data.edge_index, data.y, 1)
    two_hops = local_homophily(data.edge_index, data.y, 2)
    frequencies, curves = frequency_response(fit.coefficients, fit.basis, points=101)
    generator = torch.Generator().manual_seed(FIRST_REPORT_SEED)
    subsets: dict[str, Any] = {}
    for subset, mask in filter_subsets(one_hop, two_hops).items():
        nodes = mask.nonzero().flatten()
        chosen = nodes[torch.randperm(len(nodes), generator=generator)[:NODES]]
        mean_centre = None
        if len(nodes):
            mean_centre = float(centre_frequency(frequencies, curves[nodes]).mean())
        subsets[subset] = {
            "size": len(nodes),
            "nodes": chosen.tolist(),
            "curves": rounded(curves[chosen]),
            "mean_centre": mean_centre,
        }
    return {
        "name": name,
        "frequencies": [round(frequency, 5) for frequency in frequencies.tolist()],
        "subsets": subsets,
    }


def draw(rows: dict[str, Any]) -> Any:
    """Draw one panel per graph and one colour per subset, whose size is in the legend."""
    with canvas() as plt:
        figure, axes = panels(plt, len(rows["graphs"]), width=2.8, height=2.7)
        for ax, graph in zip(axes[0], rows["graphs"]):
            undefined = [float("nan")] * len(graph["frequencies"])
            for subset, found in graph["subsets"].items():
                # An empty subset still gets its entry in the legend.
                for i, curve in enumerate(found["curves"] or [undefined]):
                    label = f"{subset} ({found['size']} nodes)" if i == 0 else None
                    style = {"color": _COLOURS[subset], "ls": _LINE_STYLES[subset], "lw": 1.2}
                    ax.plot(graph["frequencies"], curve, label=label, **style)
            ax.set(xlabel="frequency λ", xlim=(0, 2))
            ax.set_title(f"{title(graph['name'])}: centres differ by {_difference(graph):.2f}")
            ax.legend(fontsize=6.5, loc="best")
        axes[0, 0].set_ylabel("response")
        headline(figure, _finding(rows["graphs"]))
    return figure


def _difference(graph: dict[str, Any]) -> float:
    """Return the largest difference between the mean centre frequencies of the subsets."""
    subsets = graph["subsets"].values()
    centres = [found["mean_centre"] for found in subsets if found["mean_centre"] is not None]
    return max(centres, default=0.0) - min(centres, default=0.0)


def _finding(graphs: list[dict[str, Any]]) -> str:
    largest = max(_difference(graph) for graph in graphs)
    frequencies = "nearly the same" if largest < _CLEAR_DIFFERENCE else "different"
    return (
        f"Low-, band- and high-pass nodes learn filters for {frequencies} frequencies: "
        f"the mean centres differ by at most {largest:.2f}"
    )
