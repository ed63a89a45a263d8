"""The graph that is precomputed: in memory, or read in blocks."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data import TableEncoding, class_names_of, ids_as_array, names_of
from nfgnn.npyfile import NpyFile
from nfgnn.spectral import scaled_laplacian

Report = Callable[[str, int, int], None]
"""Receives progress: the stage, the amount done, and the total (0 if it is not known)."""

MASKS = ("train_mask", "val_mask", "test_mask")


class Source(Protocol):
    """A graph whose features and edges are read in blocks.

    Implemented by :class:`MemorySource` and by :class:`nfgnn.data.LargeGraph`.
    """

    @property
    def name(self) -> str: ...
    @property
    def registered_name(self) -> str:
        """The registered data set that the graph is; empty for a graph of the user."""

    @property
    def source(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def num_nodes(self) -> int: ...
    @property
    def num_features(self) -> int: ...
    @property
    def num_entries(self) -> int:
        """Entries of the adjacency matrix, or an upper bound."""

    @property
    def weighted(self) -> bool:
        """Whether the edges have weights."""

    @property
    def sparse_features(self) -> bool:
        """Whether features are scaled as a sparse matrix, which rounds otherwise."""

    @property
    def y(self) -> np.ndarray:
        """Labels ``[num_nodes]``, -1 for unlabelled nodes."""

    @property
    def class_names(self) -> list[str]: ...
    @property
    def masks(self) -> dict[str, np.ndarray]: ...
    @property
    def node_ids(self) -> Any:
        """The users' ids of the nodes; ``None`` if they are the numbers of the nodes."""

    @property
    def feature_names(self) -> list[str] | None: ...
    @property
    def feature_encoding(self) -> TableEncoding | None: ...
    @property
    def features(self) -> Callable[[int], Iterator[np.ndarray]]:
        """Returns the features as float32 blocks of at most the given number of rows."""

    def write_pattern(self, folder: Path, memory: int, self_loops: bool, report: Report) -> None:
        """Write ``indptr.npy`` and ``indices.npy`` of the adjacency matrix.

        For a graph with edge weights, also write ``weight.npy``. ``scale.npy`` may be left out.
        """


class MemorySource:
    """A graph in memory, as :func:`nfgnn.data.load_dataset` returns it.

    Args:
        data: the graph.
        source: name or path that it was read from.
    """

    def __init__(self, data: Data, source: str = "memory") -> None:
        self.data = data
        self.source = source
        self.name = str(data.get("name") or "graph")
        self.registered_name = str(data.get("registered_name") or "")
        self.metric = str(data.get("metric") or "auto")
        self.num_nodes, self.num_features = data.x.shape
        self.num_entries = data.edge_index.shape[1]
        self.weighted = data.get("edge_weight") is not None
        self.sparse_features = data.x.layout != torch.strided
        self.y: np.ndarray = data.y.numpy()
        self.class_names = class_names_of(data)
        self.masks: dict[str, np.ndarray] = {}
        for key in MASKS:
            if data.get(key) is not None:
                self.masks[key] = data[key].numpy()
        ids = data.get("node_ids")
        self.node_ids = None if ids is None else ids_as_array(ids)
        self.feature_names: list[str] | None = names_of(data, "feature_names") or None
        self.feature_encoding: TableEncoding | None = data.get("feature_encoding")
        self.fingerprint = self._fingerprint()

    def features(self, rows: int) -> Iterator[np.ndarray]:
        """Yield the features in dense blocks of at most ``rows`` rows."""
        return dense_rows(self.data.x, rows)

    def write_pattern(self, folder: Path, memory: int, self_loops: bool, report: Report) -> None:
        """Write the arrays of the adjacency matrix; see :class:`Source`."""
        operator = scaled_laplacian(
            self.data.edge_index, self.data.get("edge_weight"), self.num_nodes, self_loops
        )
        arrays = {
            "indptr": operator.indptr.numpy().astype(np.int64),
            "scale": operator.scale.numpy(),
            "indices": operator.indices.numpy().astype(np.int32),
        }
        if operator.weight is not None:
            arrays["weight"] = operator.weight.numpy()
        for name, array in arrays.items():
            partial = folder / f"{name}.part"
            with NpyFile.create(partial, array.dtype, array.shape) as file:
                file.write(0, array)
                file.finish()
            partial.replace(folder / f"{name}.npy")
        report("writing the graph", 1, 1)

    def _fingerprint(self) -> str:
        x = self.data.x
        if x.layout == torch.strided:
            parts = [x]
        else:
            parts = [x.crow_indices(), x.col_indices(), x.values()]
        parts += [self.data.edge_index, self.data.y]
        if self.data.get("edge_weight") is not None:
            parts.append(self.data.edge_weight)
        digest = hashlib.sha256()
        for part in parts:
            digest.update(str(tuple(part.shape)).encode())
            digest.update(part.contiguous().numpy().reshape(-1).view(np.uint8).data)
        return digest.hexdigest()


def dense_rows(x: Tensor, rows: int) -> Iterator[np.ndarray]:
    """Yield a dense or CSR matrix in dense blocks of at most ``rows`` rows."""
    for first in range(0, x.shape[0], rows):
        last = min(first + rows, x.shape[0])
        if x.layout == torch.strided:
            yield x[first:last].numpy()
            continue
        indptr = x.crow_indices()[first : last + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        row = np.repeat(np.arange(last - first), indptr.diff().numpy())
        block = np.zeros((last - first, x.shape[1]), np.float32)
        block[row, x.col_indices()[entries].numpy()] = x.values()[entries].numpy()
        yield block
