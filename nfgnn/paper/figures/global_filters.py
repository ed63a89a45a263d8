"""The filters that all nodes share (rank 1) on homophilic and on heterophilic graphs (the paper's Figure 8)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nfgnn.analysis import frequency_response, homophily
from nfgnn.explain import COLOURS, canvas, panels, title
from nfgnn.paper.lab import Lab, shared_response_coefficients

DATASETS = ("cora", "citeseer", "texas", "chameleon", "squirrel", "actor")
_DASHES = ("-", "--", "-.", ":")


def rows(lab: Lab, datasets: Sequence[str]) -> dict[str, Any]:
    """The response of Γ of every run, scaled to a largest value of 1: the models are free to scale and to flip it."""
    graphs = []
    for name in datasets:
        data = lab.graph(name)
        fits = lab.fits(name, "NFGNN")
        frequencies, curves = frequency_response(
            shared_response_coefficients(fits), fits[0].basis, points=101
        )
        top = curves.gather(1, curves.abs().argmax(1, keepdim=True))
        level = homophily(data.edge_index, data.y)["node"]
        scaled = [[round(value, 5) for value in curve] for curve in (curves / top).tolist()]
        graphs.append({"name": name, "node_homophily": level, "curves": scaled})
    return {
        "graphs": graphs,
        "frequencies": [round(f, 5) for f in frequencies.tolist()],
        "runs": lab.runs,
    }


def draw(rows: dict[str, Any]) -> Any:
    """Mean over the runs, and the range from the smallest to the largest as a band."""
    with canvas() as plt:
        figure, axes = panels(plt, 2, width=4.0, height=3.0, sharey=True)
        kinds = (lambda h: h > 0.5, lambda h: h <= 0.5)
        for ax, kind, name in zip(axes[0], kinds, ("homophilic graphs", "heterophilic graphs")):
            for i, graph in enumerate(
                graph for graph in rows["graphs"] if kind(graph["node_homophily"])
            ):
                curves = np.array(graph["curves"])
                colour = COLOURS[i % len(COLOURS)]
                ax.plot(
                    rows["frequencies"],
                    curves.mean(0),
                    color=colour,
                    ls=_DASHES[i % 4],
                    label=title(graph["name"]),
                )
                ax.fill_between(
                    rows["frequencies"],
                    curves.min(0),
                    curves.max(0),
                    color=colour,
                    alpha=0.12,
                    lw=0,
                )
            ax.set(xlabel="frequency λ", title=name, xlim=(0, 2), xticks=(0, 0.5, 1, 1.5, 2))
            if ax.lines:
                ax.legend(fontsize=7)
        axes[0, 0].set_ylabel("response / largest value")
    return figure
