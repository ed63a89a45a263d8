"""What is legal but suspicious in a graph: found by looking, on well-known datasets as on a user's own.

:func:`diagnose` returns plain rows. Each has a ``kind`` to filter by, a ``count`` and its ``share`` of the
nodes, and a ``text`` for people.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data.labels import UNLABELLED, few
from nfgnn.data.load import load_dataset
from nfgnn.data.paths import is_available
from nfgnn.data.registry import REGISTRY
from nfgnn.errors import UserError

#: A class of fewer nodes cannot be in training, validation and test at once.
SMALLEST_CLASS = 3


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing before trusting a result."""

    kind: str
    text: str
    count: int
    share: float


def diagnose(data: Data, root: str | Path | None = None) -> list[Finding]:
    """Look a checked graph over.

    Args:
        data: a graph from :func:`nfgnn.data.load_dataset`.
        root: where other registered datasets are looked for, to compare the nodes with.
    """
    n = data.num_nodes
    isolated = torch.bincount(data.edge_index[0], minlength=n) == 0
    counted = [
        (
            "twins",
            twins(data),
            "have an exact twin (same neighbours, same label), so a twin in training gives the label away",
        ),
        ("empty_features", empty_features(data.x), "have no features (all zeros)"),
        ("isolated", isolated, "have no links"),
        ("unlabelled", data.y == UNLABELLED, "have no label"),
    ]
    findings = [_counted(kind, mask, n, text) for kind, mask, text in counted if bool(mask.any())]
    return [*_same_nodes(data, root), *findings, *_small_classes(data)]


def twins(data: Data, seed: int = 0) -> Tensor:
    """Which nodes share their set of neighbours and their label with another node; bool [n].

    Sets are compared by the sum of random 64-bit numbers of their members, twice, so that two different sets
    are taken for equal with a probability of 2^-128. Nodes without neighbours or label are not counted.
    """
    row, col = data.edge_index.numpy()
    n = data.num_nodes
    numbers = np.random.default_rng(seed).integers(-(2**63), 2**63, size=(2, n), dtype=np.int64)
    starts = np.searchsorted(row, np.arange(n))
    linked = np.flatnonzero((np.bincount(row, minlength=n) > 0) & (data.y.numpy() != UNLABELLED))
    found = np.zeros(n, dtype=bool)
    if len(linked):
        sums = [
            np.append(0, np.cumsum(number[col])) for number in numbers
        ]  # wraps around, as it should
        ends = np.append(starts[1:], len(row))
        keys = np.stack([*(total[ends] - total[starts] for total in sums), data.y.numpy()])[
            :, linked
        ]
        _, kind, size = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
        found[linked] = size[kind.reshape(-1)] > 1
    return torch.from_numpy(found)


def empty_features(x: Tensor) -> Tensor:
    """Which nodes have only zeros as features; bool [n]."""
    if x.layout == torch.sparse_csr:
        filled = torch.repeat_interleave(torch.arange(x.size(0)), x.crow_indices().diff())[
            x.values() != 0
        ]
        return torch.bincount(filled, minlength=x.size(0)) == 0
    return ~(x != 0).any(dim=1)


def _same_nodes(data: Data, root: str | Path | None) -> list[Finding]:
    """Registered datasets on this machine whose nodes (features and labels, in any order) are these."""

    n = data.num_nodes
    findings: list[Finding] = []
    for other in REGISTRY.values():
        if other.name == data.name or (other.nodes, other.features) != (n, data.num_features):
            continue
        try:
            same = is_available(other, root) and _equal_nodes(data, load_dataset(other.name, root))
        except UserError:  # damaged files of another dataset are not this one's problem
            continue
        if same:
            text = f"all nodes (features, labels) are those of {other.name}: one of the two is not genuine"
            findings.append(Finding("same_nodes", text, n, 1.0))
    return findings


def _equal_nodes(one: Data, other: Data) -> bool:
    return bool(np.allclose(_node_marks(one), _node_marks(other), rtol=1e-9, atol=1e-9))


def _node_marks(data: Data) -> np.ndarray:
    """Per node one random projection of its features, plus its label's part, sorted."""
    direction = np.random.default_rng(0).standard_normal(data.num_features)
    mark = data.x.double() @ torch.from_numpy(direction)
    return np.sort(mark.numpy() + 1e3 * data.y.numpy())


def _small_classes(data: Data) -> list[Finding]:
    sizes = torch.bincount(data.y[data.y != UNLABELLED], minlength=data.num_classes).tolist()
    small = [name for name, size in zip(data.class_names, sizes) if size < SMALLEST_CLASS]
    if not small:
        return []
    count = sum(size for size in sizes if size < SMALLEST_CLASS)
    text = f"class {few(small)}: fewer than {SMALLEST_CLASS} nodes, too few for train, val and test"
    return [Finding("small_classes", text, count, count / data.num_nodes)]


def _counted(kind: str, mask: Tensor, n: int, text: str) -> Finding:
    count = int(mask.sum())
    text = text if count > 1 else text.replace("have ", "has ", 1)
    nodes = "nodes" if count > 1 else "node"
    return Finding(kind, f"{count:,} {nodes} ({100 * count / n:.1f} %) {text}", count, count / n)
