"""What a page shows, as plain arrays over all nodes of the graph: no ink, no sampling."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.analysis import label_entropy, local_homophily
from nfgnn.data import split
from nfgnn.explain.explorer.layout import OnStep, force_layout, principal_components
from nfgnn.explain.explorer.selection import Subject
from nfgnn.training import NodeClassifier, load_run

PARTS = ("none", "training", "validation", "test", "unobserved")
_POINTS, _BINS = 81, 10


@dataclass(frozen=True)
class FilterColumns:
    """The polynomial filters of a run: the response of node i at frequency λ_p is ``terms[p] @ psi[i]``."""

    psi: np.ndarray
    """Ψ, ``[n, K + 1]``."""
    basis: str
    frequencies: np.ndarray
    """λ, ``[points]``."""
    terms: np.ndarray
    """The basis at these frequencies, ``[points, K + 1]``."""
    mean: np.ndarray
    """Mean of Ψ over all nodes: the response of the mean is the mean of the responses."""
    class_means: np.ndarray
    """The same over the nodes of every class, ``[classes, K + 1]``; NaN for a class without nodes."""

    @property
    def one_for_all(self) -> bool:
        """Whether the whole graph has one filter."""
        return bool((self.psi == self.psi[:1]).all())


@dataclass(frozen=True)
class RunColumns:
    """What one run says about every node."""

    name: str
    """Name of the model; with the run folder's where both runs have the same."""
    predicted: np.ndarray
    confidence: np.ndarray
    """Probability of the predicted class."""
    filters: FilterColumns | None


@dataclass(frozen=True)
class Layout:
    """One way to place the nodes, ``[n, 2]``."""

    name: str
    note: str
    place: np.ndarray
    equal_axes: bool
    """Whether a step to the right means as much as a step up."""


@dataclass(frozen=True)
class ExplorerRows:
    """Everything about a graph and one or two runs on it, a row per node."""

    dataset: str
    protocol: str
    seed: int
    class_names: list[str]
    ids: list[str] | None
    """The user's own ids, where the graph has them."""
    edge_index: np.ndarray
    label: np.ndarray
    """Class, -1 where it is not known."""
    part: np.ndarray
    """Place in :data:`PARTS`."""
    degree: np.ndarray
    homophily: np.ndarray
    """Share of neighbours of the same class; NaN where there is none."""
    entropy: np.ndarray
    """Entropy of the neighbours' classes in nats; NaN where there is none."""
    layouts: list[Layout]
    runs: list[RunColumns]

    @property
    def tested(self) -> np.ndarray:
        """Test nodes; under the inductive protocol observed and unobserved ones."""
        return self.part >= PARTS.index("test")

    def correct(self, run: int) -> np.ndarray:
        """Whether a run is right about a node; False where the class is not known."""
        return np.asarray(self.runs[run].predicted == self.label)

    def accuracy(self, run: int, nodes: np.ndarray | None = None) -> float:
        """Share of right predictions among test nodes (of a mask); NaN where there is none."""
        tested = self.tested if nodes is None else nodes & self.tested
        return float(self.correct(run)[tested].mean()) if tested.any() else float("nan")


def explorer_rows(
    subject: Subject, data: Data, device: str = "auto", on_step: OnStep | None = None
) -> ExplorerRows:
    """Apply the runs to their graph and collect what there is to see."""
    subject.check_graph(data)
    protocol = subject.summaries[0]["protocol"]
    names = subject.names()
    runs = [_run_columns(*run, subject.seed, data, device) for run in zip(names, subject.folders)]
    edge_index, ids = data.edge_index.numpy(), data.get("node_ids")
    return ExplorerRows(
        dataset=subject.summaries[0]["dataset"],
        protocol=protocol,
        seed=subject.seed,
        class_names=[str(name) for name in data.class_names],
        ids=None if ids is None else [str(name) for name in ids],
        edge_index=edge_index,
        label=data.y.numpy(),
        part=_parts(split(data, protocol, subject.seed)),
        degree=np.bincount(edge_index[0], minlength=data.num_nodes),
        homophily=local_homophily(data.edge_index, data.y).numpy(),
        entropy=label_entropy(data.edge_index, data.y).clamp(min=0).numpy(),
        layouts=[*_filter_layouts(runs), _link_layout(edge_index, data.num_nodes, on_step)],
        runs=runs,
    )


def homophily_bins(rows: ExplorerRows, bins: int = _BINS) -> list[dict[str, Any]]:
    """Equal intervals of local homophily: how many nodes, how many of them tested, and the accuracy of every run."""
    place = homophily_bin(rows.homophily, bins)
    table = []
    for i in range(bins):
        inside = place == i
        tested = int((inside & rows.tested).sum())
        scores = [rows.accuracy(run, inside) if tested else None for run in range(len(rows.runs))]
        interval = {"low": i / bins, "high": (i + 1) / bins}
        table.append({**interval, "nodes": int(inside.sum()), "tested": tested, "accuracy": scores})
    return table


def homophily_bin(homophily: np.ndarray, bins: int = _BINS) -> np.ndarray:
    """The interval [i / bins, (i + 1) / bins) of every node, 1 counting to the last one; -1 where there is no h."""
    known = ~np.isnan(homophily)
    inside = np.floor(np.nan_to_num(homophily) * bins + 1e-9).astype(
        np.int64
    )  # 0.3 · 10 must not fall below 3
    return np.where(known, np.minimum(inside, bins - 1), -1)


def _run_columns(name: str, folder: Path, seed: int, data: Data, device: str) -> RunColumns:
    classifier = load_run(folder, seed, device)
    top = classifier.predict_proba(data).max(-1)
    filters = _filter_columns(classifier, data) if classifier.model_.has_coefficients else None
    return RunColumns(name, top.indices.numpy(), top.values.numpy(), filters)


def _filter_columns(classifier: NodeClassifier, data: Data) -> FilterColumns:
    psi, prop = classifier.coefficients(data), getattr(classifier.model_, "prop")  # noqa: B009
    t = torch.linspace(-1, 1, _POINTS, dtype=torch.float64)
    classes = range(len(data.class_names))
    return FilterColumns(
        psi=psi.numpy(),
        basis=str(prop.basis),
        frequencies=((t + 1) * classifier.lambda_max(data) / 2).numpy(),
        terms=prop.basis.evaluate(t, prop.K).numpy(),
        mean=psi.double().mean(0).numpy(),
        class_means=torch.stack([_mean(psi[data.y == c]) for c in classes]).numpy(),
    )


def _mean(rows: Tensor) -> Tensor:
    return rows.double().mean(0)  # NaN without rows


def _filter_layouts(runs: list[RunColumns]) -> list[Layout]:
    layouts = []
    for run in runs:
        found = principal_components(run.filters.psi) if run.filters else None
        if found:
            place, share = found
            name = "filters" if len(runs) == 1 else f"filters of {run.name}"
            note = f"principal components of Ψ: {100 * share[0]:.0f} % and {100 * share[1]:.0f} % of its variance"
            layouts.append(Layout(name, note, place, equal_axes=False))
            ranks = rankdata(place, method="ordinal", axis=0)
            note = "ranks of the principal components of Ψ, which pull apart nodes with nearly the same filter"
            layouts.append(Layout(f"{name}, ranked", note, ranks, equal_axes=False))
    return layouts


def _link_layout(edge_index: np.ndarray, n: int, on_step: OnStep | None) -> Layout:
    place = force_layout(edge_index, n, on_step=on_step)
    return Layout("links", "force layout: linked nodes are close", place, equal_axes=True)


def _parts(data: Data) -> np.ndarray:
    part = np.zeros(data.num_nodes, np.int64)
    for i, name in enumerate(("train", "val", "test", "unobserved"), start=1):
        if data.get(f"{name}_mask") is not None:
            part[data[f"{name}_mask"].numpy()] = i
    return part
