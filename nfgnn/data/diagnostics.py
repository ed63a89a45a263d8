"""Find known data issues: what is legal in a graph, but can invalidate results.

The same tests run on published data sets and on a user's own graph. :func:`diagnose` returns plain
rows with a ``kind`` to filter by, a ``count``, its ``share`` of the nodes, and a ``text`` to print.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data.download import is_available
from nfgnn.data.labels import UNLABELLED
from nfgnn.data.load import load_dataset
from nfgnn.data.messages import counted, few
from nfgnn.data.registry import REGISTRY
from nfgnn.errors import UserError

SMALLEST_CLASS = 3
"""A class of fewer nodes cannot be in training, validation and test at once."""


@dataclass(frozen=True)
class Finding:
    """One data issue."""

    kind: str
    text: str
    count: int
    share: float


def diagnose(data: Data, root: str | Path | None = None) -> list[Finding]:
    """Return the data issues of a validated graph.

    Args:
        data: a graph from :func:`nfgnn.data.load_dataset`.
        root: data root of the registered data sets that the nodes are compared with.
    """
    degree = torch.bincount(data.edge_index[0], minlength=data.num_nodes)
    tests = [
        (
            "twins",
            twins(data),
            "an exact twin (same neighbours, same label), so a training node can reveal the label",
        ),
        ("empty_features", empty_features(data.x), "no features (all zeros)"),
        ("isolated", degree == 0, "no edges"),
        ("unlabelled", data.y == UNLABELLED, "no label"),
    ]
    findings = _same_nodes(data, root)
    for kind, mask, what in tests:
        count = int(mask.sum())
        if count:
            share = count / data.num_nodes
            have = "have" if count > 1 else "has"
            text = f"{counted(count, 'node')} ({100 * share:.1f} %) {have} {what}"
            findings.append(Finding(kind, text, count, share))
    return findings + _small_classes(data)


def twins(data: Data, seed: int = 0) -> Tensor:
    """Return which nodes share their set of neighbours and their label with another; bool [n].

    Sets are compared by two sums of random 64-bit numbers of their members. Two different sets have
    equal sums with a probability of 2^-128. Nodes without neighbours or label are not counted.
    """
    row, col = data.edge_index.numpy()
    y = data.y.numpy()
    n = data.num_nodes
    numbers = np.random.default_rng(seed).integers(-(2**63), 2**63, size=(2, n), dtype=np.int64)
    starts = np.searchsorted(row, np.arange(n + 1))
    candidates = np.flatnonzero((np.diff(starts) > 0) & (y != UNLABELLED))
    found = np.zeros(n, dtype=bool)
    if len(candidates):
        keys = [y]
        for number in numbers:
            total = np.append(0, np.cumsum(number[col]))  # overflow wraps around, as it should
            keys.append(np.diff(total[starts]))
        _, group, size = np.unique(
            np.stack(keys)[:, candidates], axis=1, return_inverse=True, return_counts=True
        )
        found[candidates] = size[group.reshape(-1)] > 1
    return torch.from_numpy(found)


def empty_features(x: Tensor) -> Tensor:
    """Return which nodes have only zeros as features; bool [n]."""
    if x.layout == torch.strided:
        return ~(x != 0).any(dim=1)
    row = torch.repeat_interleave(torch.arange(x.size(0)), x.crow_indices().diff())
    return torch.bincount(row[x.values() != 0], minlength=x.size(0)) == 0


def _same_nodes(data: Data, root: str | Path | None) -> list[Finding]:
    """Compare with the available data sets of this size: features and labels, in any order."""
    size = (data.num_nodes, data.num_features)
    findings: list[Finding] = []
    known = data.get("registered_name")
    for other in REGISTRY.values():
        if other.name == known or (other.nodes, other.features) != size:
            continue
        try:
            same = is_available(other, root) and _equal_nodes(data, load_dataset(other.name, root))
        except UserError:  # damaged files of another data set are not an issue of this graph
            continue
        if same:
            text = (
                f"all nodes have the features and labels of {other.name}: one of the two graphs "
                "is a copy"
            )
            findings.append(Finding("same_nodes", text, data.num_nodes, 1.0))
    return findings


def _equal_nodes(one: Data, other: Data) -> bool:
    return np.allclose(_projections(one), _projections(other), rtol=1e-9, atol=1e-9)


def _projections(data: Data) -> np.ndarray:
    """Return a random projection of every node's features plus a term of its label, sorted."""
    direction = np.random.default_rng(0).standard_normal(data.num_features)
    projection = data.x.double() @ torch.from_numpy(direction)
    return np.sort(projection.numpy() + 1e3 * data.y.numpy())


def _small_classes(data: Data) -> list[Finding]:
    sizes = torch.bincount(data.y[data.y != UNLABELLED], minlength=data.num_classes).tolist()
    small = [name for name, size in zip(data.class_names, sizes) if size < SMALLEST_CLASS]
    if not small:
        return []
    count = sum(size for size in sizes if size < SMALLEST_CLASS)
    text = f"class {few(small)}: fewer than {SMALLEST_CLASS} nodes, too few for train, val and test"
    return [Finding("small_classes", text, count, count / data.num_nodes)]
