"""What features alone and edges alone predict: two quick models, cross-validated.

An MLP sees the features and no edges. LINK, a logistic regression on the rows of the adjacency
matrix, sees the edges and no features. Neither is tuned: together with the best constant prediction
they show what both sources of information are worth, in seconds.

The work is limited instead of the time, so the same graph gives the same scores on every machine.
On a large graph a random sample of the labelled nodes is cross-validated.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from nfgnn.analysis.neighbourhood import edge_array

if TYPE_CHECKING:
    from sklearn.base import ClassifierMixin

Score = Callable[[Tensor, Tensor], float]
"""Score of class probabilities ``[n, C]`` and labels ``[n]``."""
OnFold = Callable[[int, int], None]
"""Called with the number of trained models and their total."""
_Matrix: TypeAlias = "np.ndarray | sparse.csr_array"

_FOLDS = 5
_MAX_NODES = 10_000
_LEAST_NODES = 1_000
_MAX_ENTRIES = 3_000_000  # of the feature matrix, which decide the time of the MLP
_MAX_COLUMNS = 20_000  # of LINK, whose solver keeps dense copies of its weights
_MAX_EPOCHS = 30
_MAX_ITERATIONS = 50
_HIDDEN = 64


@dataclass(frozen=True)
class Baselines:
    """Scores of the two models on held-out nodes."""

    nodes: int
    """Number of nodes that were cross-validated."""
    folds: int
    constant: float
    """Score of the best constant prediction: the shares of the classes."""
    features: list[float] | None
    """Score of the MLP in every fold; ``None`` without features."""
    edges: list[float] | None
    """Score of LINK in every fold; ``None`` without edges."""


def cross_validate_baselines(
    x: Tensor | None,
    edge_index: Tensor,
    y: Tensor,
    score: Score,
    seed: int = 0,
    on_fold: OnFold | None = None,
) -> Baselines | None:
    """Cross-validate an MLP without edges and LINK without features.

    Args:
        x: features ``[n, f]``, dense or sparse CSR; ``None`` if the graph has none of its own.
        edge_index: edges in both directions, ``[2, 2E]``.
        y: labels ``[n]``, -1 where unlabelled.
        score: of probabilities and labels.
        seed: of the sample, the folds and the MLP.
        on_fold: called after every training.

    Returns:
        The scores, or ``None`` if fewer than two classes have two labelled nodes.
    """
    from sklearn.model_selection import StratifiedKFold

    classes = int(y.max()) + 1
    nodes = _sample(y, x, seed)
    labels = y[nodes]
    sizes = np.sort(np.bincount(labels.numpy(), minlength=2))
    # Then every fold has nodes of at least two classes, and so have the others together.
    folds = min(_FOLDS, int(sizes[-2]))
    if folds < 2:
        return None
    matrices: dict[str, _Matrix] = {}
    if x is not None and x.shape[1] > 0:
        matrices["features"] = _feature_rows(x, nodes)
    if edge_index.size(1) > 0:
        matrices["edges"] = _adjacency_rows(edge_index, nodes, len(y))
    parts = StratifiedKFold(folds, shuffle=True, random_state=seed)
    scores: dict[str, list[float]] = {name: [] for name in matrices}
    done = 0
    with warnings.catch_warnings():
        # Models that have not converged and classes with fewer nodes than folds are expected.
        warnings.filterwarnings("ignore", module="sklearn")
        for training, held_out in parts.split(labels, labels):
            for name, matrix in matrices.items():
                model = _mlp(matrix, seed) if name == "features" else _link()
                model.fit(matrix[training], labels[training])
                found = _probabilities(model, matrix[held_out], classes)
                scores[name].append(score(found, labels[held_out]))
                done += 1
                if on_fold:
                    on_fold(done, folds * len(matrices))
    shares = torch.bincount(labels, minlength=classes).double() / len(labels)
    return Baselines(
        nodes=len(nodes),
        folds=folds,
        constant=score(shares.expand(len(labels), -1), labels),
        features=scores.get("features"),
        edges=scores.get("edges"),
    )


def _sample(y: Tensor, x: Tensor | None, seed: int) -> Tensor:
    """Return the nodes to cross-validate: all labelled nodes, or as many as the limits allow."""
    nodes = (y >= 0).nonzero().flatten()
    most = _MAX_NODES
    if x is not None:
        entries = x.values().numel() if x.layout == torch.sparse_csr else x.numel()
        # Every batch updates the weights of all features, also of those that it does not have.
        per_node = entries / len(y) + x.shape[1] / 8
        most = min(most, max(_LEAST_NODES, int(_MAX_ENTRIES / max(1.0, per_node))))
    if len(nodes) <= most:
        return nodes
    order = torch.randperm(len(nodes), generator=torch.Generator().manual_seed(seed))
    return nodes[order[:most]].sort().values


def _feature_rows(x: Tensor, nodes: Tensor) -> _Matrix:
    if x.layout == torch.strided:
        dense: np.ndarray = x[nodes].numpy()
        return dense
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    rows: _Matrix = sparse.csr_array(parts, shape=tuple(x.shape))[nodes.numpy()]
    return rows


def _adjacency_rows(edge_index: Tensor, nodes: Tensor, n: int) -> sparse.csr_array:
    """Return the rows of the nodes, and the columns that several of them share.

    A neighbour of a single node says nothing about the others.
    """
    edges = edge_array(edge_index, n)
    row_of = np.full(n, -1)
    row_of[nodes.numpy()] = np.arange(len(nodes))
    row = row_of[edges[0]]
    inside = row >= 0
    ones = np.ones(int(inside.sum()), dtype=np.float32)
    places = (row[inside], edges[1, inside])
    rows = sparse.csr_array((ones, places), shape=(len(nodes), n))
    shared_by = np.bincount(rows.indices, minlength=n)
    columns = np.flatnonzero(shared_by > 1)
    if len(columns) > _MAX_COLUMNS:
        most = np.argsort(-shared_by[columns], kind="stable")[:_MAX_COLUMNS]
        columns = np.sort(columns[most])
    if len(columns) == 0:
        columns = np.zeros(1, dtype=np.int64)
    return rows[:, columns]


def _mlp(matrix: _Matrix, seed: int) -> "ClassifierMixin":
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    # Centring would fill a sparse matrix, and equal variances would stress its rarest columns.
    scaler = MaxAbsScaler() if sparse.issparse(matrix) else StandardScaler()
    mlp = MLPClassifier(
        (_HIDDEN,),
        alpha=0.01,
        batch_size=min(256, matrix.shape[0]),
        learning_rate_init=0.005,
        max_iter=_MAX_EPOCHS,
        random_state=seed,
    )
    return make_pipeline(scaler, mlp)


def _link() -> "ClassifierMixin":
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=_MAX_ITERATIONS)


def _probabilities(model: "ClassifierMixin", matrix: _Matrix, classes: int) -> Tensor:
    """Return ``[n, classes]``; classes without training nodes have probability 0."""
    probabilities = torch.zeros(matrix.shape[0], classes, dtype=torch.float64)
    found = np.asarray(model.predict_proba(matrix), dtype=np.float64)
    probabilities[:, torch.from_numpy(np.asarray(model.classes_))] = torch.from_numpy(found)
    return probabilities
