"""Spectra of the normalised Laplacians of several graphs."""

from collections.abc import Sequence
from typing import Any

from nfgnn.analysis import spectrum
from nfgnn.explain.figures import spectrum as spectrum_figure
from nfgnn.paper.trained_models import TrainedModels

DATASETS = ("cora", "texas", "chameleon", "actor")
draw = spectrum_figure.draw


def rows(models: TrainedModels, datasets: Sequence[str]) -> dict[str, Any]:
    """Return the shares of eigenvalues of every graph."""
    graphs = []
    for name in datasets:
        data = models.graph(name)
        graphs.append(spectrum_figure.row(name, spectrum(data.edge_index, data.num_nodes)))
    return {"graphs": graphs}
