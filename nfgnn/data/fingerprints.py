"""Recognise a registered data set by its content, whatever its file is called.

``fingerprints.txt`` lists the data sets whose raw files were available: the hash of the validated
graph, its numbers of nodes, edges and features, and the registered name. Its first line is the
command that writes it.

The hash covers edges, edge weights, features, labels and the order of the nodes. It does not cover
masks, names of nodes, features and classes, the numbers of the classes, or whether the features are
stored dense or sparse. So a graph has one hash, from its raw files and from every exported format.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data.labels import UNLABELLED

FILE = Path(__file__).parent / "fingerprints.txt"


@dataclass(frozen=True)
class Size:
    """The size of a validated graph. A graph of another size is not hashed."""

    nodes: int
    edges: int
    features: int

    @classmethod
    def of(cls, data: Data) -> "Size":
        return cls(data.num_nodes, data.edge_index.size(1) // 2, data.num_features)


@cache
def known_fingerprints() -> dict[str, tuple[Size, str]]:
    """Return size and hash of the data sets in ``fingerprints.txt`` by their registered name."""
    known = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            digest, nodes, edges, features, name = line.split()
            known[name] = (Size(int(nodes), int(edges), int(features)), digest)
    return known


def recognise(data: Data) -> str | None:
    """Return the registered name of a validated graph by its content, ``None`` if it has none."""
    size = Size.of(data)
    candidates = {digest: name for name, (s, digest) in known_fingerprints().items() if s == size}
    if not candidates:
        return None
    return candidates.get(content_hash(data))


def content_hash(data: Data) -> str:
    """Return the hash of edges, weights, features and labels of a validated graph."""
    x = _csr(data.x)
    parts = {
        "edges": data.edge_index.numpy().astype("<i8"),
        "rows": x.indptr.astype("<i8"),
        "columns": x.indices.astype("<i8"),
        "values": x.data.astype("<f4"),
        "labels": _by_first_appearance(data.y.numpy()).astype("<i8"),
    }
    if data.get("edge_weight") is not None:
        parts["weights"] = data.edge_weight.numpy().astype("<f4")
    digest = hashlib.sha256()
    for name, array in parts.items():
        # The bytes alone do not distinguish shapes such as [2, 3] and [3, 2].
        digest.update(f"{name}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:32]


def _csr(x: Tensor) -> sparse.csr_matrix:
    """Return the features without stored zeros, in the order of the columns."""
    if x.layout == torch.strided:
        return sparse.csr_matrix(x.numpy())
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    matrix = sparse.csr_matrix(parts, shape=tuple(x.shape), copy=True)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def _by_first_appearance(y: np.ndarray) -> np.ndarray:
    """Number the classes in the order in which they first occur; -1 stays -1."""
    labelled = np.flatnonzero(y != UNLABELLED)
    _, first, code = np.unique(y[labelled], return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    numbered = np.full(len(y), UNLABELLED, dtype=np.int64)
    numbered[labelled] = place[code.reshape(-1)]
    return numbered
