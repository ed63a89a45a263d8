"""The content of an explorer page as arrays over all nodes of the graph, before any sampling."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from nfgnn.analysis import (
    accuracy_by_homophily,
    homophily_interval,
    label_entropy,
    local_homophily,
)
from nfgnn.data import ids_as_array, split
from nfgnn.explain.explorer.layout import OnStep, force_layout, principal_components
from nfgnn.explain.explorer.selection import RunSelection
from nfgnn.training import NodeClassifier, load_run

PARTS = ("none", "training", "validation", "test", "unobserved")
BINS = 10
DEGENERATE = 0.95
"""If the first component holds a larger share of the variance, a map of filters is a line."""
_POINTS = 81


@dataclass(frozen=True)
class FilterColumns:
    """Polynomial filters of a run; node i responds to frequency λ_p with ``terms[p] @ psi[i]``."""

    psi: np.ndarray
    """Ψ, ``[n, K + 1]``."""
    basis: str
    frequencies: np.ndarray
    """λ, ``[points]``."""
    terms: np.ndarray
    """The basis at these frequencies, ``[points, K + 1]``."""
    mean: np.ndarray
    """Mean of Ψ over all nodes. Its response is the mean of the responses."""
    class_means: np.ndarray
    """Mean of Ψ over the nodes of each class, ``[classes, K + 1]``; NaN for empty classes."""

    @property
    def shared(self) -> bool:
        """Whether all nodes have the same filter."""
        return bool((self.psi == self.psi[:1]).all())


@dataclass(frozen=True)
class RunColumns:
    """Results of one run for every node."""

    name: str
    predicted: np.ndarray
    confidence: np.ndarray
    """Probability of the predicted class."""
    filters: FilterColumns | None


@dataclass(frozen=True)
class Layout:
    """One way to place the nodes."""

    name: str
    note: str
    place: np.ndarray
    """Coordinates ``[n, 2]``."""
    equal_axes: bool
    """Whether both axes have the same scale."""
    first_share: float | None = None
    """Share of the first principal component in the variance, for the components themselves."""


@dataclass(frozen=True)
class NodeTable:
    """Everything about a graph and one or two runs on it, with one row per node."""

    dataset: str
    protocol: str
    seed: int
    class_names: list[str]
    ids: list[str] | None
    """The user's node ids, if the graph has any."""
    edge_index: np.ndarray
    label: np.ndarray
    """Class, -1 where unlabelled."""
    part: np.ndarray
    """Part of the split, as an index of :data:`PARTS`."""
    degree: np.ndarray
    homophily: np.ndarray
    """Share of neighbours of the same class; NaN where undefined."""
    entropy: np.ndarray
    """Entropy of the neighbours' classes in nats; NaN where undefined."""
    layouts: list[Layout]
    """The first one does not depend on the runs."""
    runs: list[RunColumns]

    @property
    def start_layout(self) -> int:
        """The layout to start with: filters if they spread in two directions, else the first."""
        for i, layout in enumerate(self.layouts):
            if layout.first_share is not None and layout.first_share <= DEGENERATE:
                return i
        return 0

    @property
    def tested(self) -> np.ndarray:
        """Test nodes, both observed and unobserved ones under the inductive protocol."""
        return self.part >= PARTS.index("test")

    def correct(self, run: int) -> np.ndarray:
        """Return whether a run predicts the class of each node; False for unlabelled nodes."""
        return np.asarray(self.runs[run].predicted == self.label)

    def accuracy(self, run: int, nodes: np.ndarray | None = None) -> float:
        """Return the accuracy of a run on the test nodes (of a mask); NaN if there are none."""
        tested = self.tested if nodes is None else nodes & self.tested
        return float(self.correct(run)[tested].mean()) if tested.any() else float("nan")

    def homophily_bin(self) -> np.ndarray:
        """Return the interval of homophily of each node, -1 where undefined."""
        return homophily_interval(torch.from_numpy(self.homophily), BINS).numpy()


def build_node_table(
    selection: RunSelection, data: Data, device: str = "auto", on_step: OnStep | None = None
) -> NodeTable:
    """Apply the selected runs to their graph and collect what the explorer shows.

    Args:
        selection: the runs, from :func:`select_runs`.
        data: the graph that they were trained on.
        device: device of the models.
        on_step: called after every step of the force-directed layout.
    """
    selection.check_graph(data)
    summary = selection.summaries[0]
    runs = []
    for name, folder in zip(selection.run_names(), selection.folders):
        runs.append(_run_columns(name, folder, selection.seed, data, device))
    edge_index = data.edge_index.numpy()
    ids = data.get("node_ids")
    place = force_layout(edge_index, data.num_nodes, on_step=on_step)
    by_edges = Layout("force-directed", "adjacent nodes attract each other", place, equal_axes=True)
    return NodeTable(
        dataset=summary["dataset"],
        protocol=summary["protocol"],
        seed=selection.seed,
        class_names=[str(name) for name in data.class_names],
        ids=None if ids is None else [str(name) for name in ids_as_array(ids).to_pylist()],
        edge_index=edge_index,
        label=data.y.numpy(),
        part=_parts(split(data, summary["protocol"], selection.seed)),
        degree=np.bincount(edge_index[0], minlength=data.num_nodes),
        homophily=local_homophily(data.edge_index, data.y).numpy(),
        entropy=label_entropy(data.edge_index, data.y).clamp(min=0).numpy(),
        layouts=[by_edges, *_filter_layouts(runs)],
        runs=runs,
    )


def homophily_bins(table: NodeTable) -> list[dict[str, Any]]:
    """Return size, number of test nodes and accuracy of every run per interval of homophily."""
    bin_of_node = table.homophily_bin()
    nodes = np.bincount(bin_of_node[bin_of_node >= 0], minlength=BINS)
    h = torch.from_numpy(table.homophily[table.tested])
    scores = []
    for run in range(len(table.runs)):
        correct = torch.from_numpy(table.correct(run)[table.tested])
        scores.append(accuracy_by_homophily(correct, h, BINS))
    bins = []
    for i in range(BINS):
        tested = int(scores[0].nodes[i])
        accuracy = [float(score.accuracy[i]) if tested else None for score in scores]
        bins.append(
            {
                "low": i / BINS,
                "high": (i + 1) / BINS,
                "nodes": int(nodes[i]),
                "tested": tested,
                "accuracy": accuracy,
            }
        )
    return bins


def class_rows(table: NodeTable) -> list[dict[str, Any]]:
    """Return the number of nodes and the test accuracy of every run for each class."""
    rows = []
    for c in range(len(table.class_names)):
        nodes = table.label == c
        accuracy = [table.accuracy(run, nodes) for run in range(len(table.runs))]
        known = [None if np.isnan(value) else value for value in accuracy]
        rows.append({"nodes": int(nodes.sum()), "accuracy": known})
    return rows


def _run_columns(name: str, folder: Path, seed: int, data: Data, device: str) -> RunColumns:
    classifier = load_run(folder, seed, device)
    top = classifier.predict_proba(data).max(-1)
    filters = None
    if classifier.model_.has_coefficients:
        filters = _filter_columns(classifier, data)
    return RunColumns(name, top.indices.numpy(), top.values.numpy(), filters)


def _filter_columns(classifier: NodeClassifier, data: Data) -> FilterColumns:
    prop: Any = classifier.model_.filter
    psi = classifier.coefficients(data)
    t = torch.linspace(-1, 1, _POINTS, dtype=torch.float64)
    # The mean over an empty class is NaN.
    classes = range(len(data.class_names))
    class_means = [psi[data.y == c].double().mean(0) for c in classes]
    return FilterColumns(
        psi=psi.numpy(),
        basis=str(prop.basis),
        frequencies=((t + 1) * classifier.lambda_max(data) / 2).numpy(),
        terms=prop.basis.evaluate(t, prop.K).numpy(),
        mean=psi.double().mean(0).numpy(),
        class_means=torch.stack(class_means).numpy(),
    )


def _filter_layouts(runs: list[RunColumns]) -> list[Layout]:
    """Return two layouts for every run whose filters differ between nodes."""
    layouts = []
    for run in runs:
        components = principal_components(run.filters.psi) if run.filters else None
        if components is None:
            continue
        place, shares = components
        first, second = (f"{100 * share:.1f} %" for share in shares)
        name = "filters" if len(runs) == 1 else f"filters of {run.name}"
        note = f"the first two principal components of Ψ hold {first} and {second} of its variance"
        layouts.append(Layout(f"{name} (PCA)", note, place, False, first_share=shares[0]))
        # Most filters are nearly equal and overlap on the map, unless they are placed by rank.
        ranks = place.argsort(axis=0, kind="stable").argsort(axis=0) + 1
        note = "ranks of the principal components of Ψ, which separate nodes with similar filters"
        layouts.append(Layout(f"{name} (PCA ranks)", note, ranks, equal_axes=False))
    return layouts


def _parts(data: Data) -> np.ndarray:
    part = np.zeros(data.num_nodes, np.int64)
    for i, name in enumerate(("train", "val", "test", "unobserved"), start=1):
        mask = data.get(f"{name}_mask")
        if mask is not None:
            part[mask.numpy()] = i
    return part
