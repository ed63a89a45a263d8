"""What is precomputed from: a graph in memory, or one that is read in blocks."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.npyfile import NpyFile
from nfgnn.spectral import scaled_laplacian

Report = Callable[[str, int, int], None]
"""Is told of progress: what is done, how far, of how many (0: not known)."""


class Source(Protocol):
    """A graph whose features and links come in blocks, such as :class:`nfgnn.data.LargeGraph`."""

    @property
    def name(self) -> str: ...
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
        """Entries of the adjacency matrix, or an upper bound of them."""

    @property
    def y(self) -> np.ndarray: ...
    @property
    def class_names(self) -> list[str]: ...
    @property
    def masks(self) -> dict[str, np.ndarray]: ...
    @property
    def features(self) -> Callable[[int], Iterator[np.ndarray]]:
        """Blocks of at most so many rows of the features, float32."""

    def write_pattern(self, folder: Path, memory: int, self_loops: bool, report: Report) -> None:
        """``indptr.npy`` and ``indices.npy`` of the adjacency matrix; also ``weight.npy`` and ``scale.npy`` where
        links have weights."""


class MemorySource:
    """A graph in memory, checked by :func:`nfgnn.data.load_dataset`.

    Args:
        data: the graph.
        source: where it was read from.
    """

    def __init__(self, data: Data, source: str = "memory") -> None:
        self.data, self.source = data, source
        self.name, self.metric = (
            str(data.get("name") or "graph"),
            str(data.get("metric") or "accuracy"),
        )
        self.num_nodes, self.num_features = data.x.shape
        self.num_entries = data.edge_index.shape[1]
        self.y: np.ndarray = data.y.numpy()
        classes = data.get("class_names") or range(int(data.y.max()) + 1)
        self.class_names = [str(c) for c in classes]
        masks = ("train_mask", "val_mask", "test_mask")
        self.masks: dict[str, np.ndarray] = {
            key: data[key].numpy() for key in masks if data.get(key) is not None
        }
        self.fingerprint = self._fingerprint()

    def features(self, rows: int) -> Iterator[np.ndarray]:
        return dense_rows(self.data.x, rows)

    def write_pattern(self, folder: Path, memory: int, self_loops: bool, report: Report) -> None:
        operator = scaled_laplacian(
            self.data.edge_index, self.data.get("edge_weight"), self.num_nodes, self_loops
        )
        arrays = {
            "indptr": operator.indptr.numpy().astype(np.int64),
            "scale": operator.scale.numpy(),
        }
        arrays |= {} if operator.weight is None else {"weight": operator.weight.numpy()}
        for name, array in (
            arrays | {"indices": operator.indices.numpy().astype(np.int32)}
        ).items():
            part = folder / f"{name}.part"
            with NpyFile.create(part, array.dtype, array.shape) as file:
                file.write(0, array)
                file.finish()
            part.replace(folder / f"{name}.npy")
        report("writing the graph", 1, 1)

    def _fingerprint(self) -> str:
        mark = hashlib.sha256()
        x = self.data.x
        parts = (
            [x] if x.layout == torch.strided else [x.crow_indices(), x.col_indices(), x.values()]
        )
        parts += [self.data.edge_index, self.data.y]
        parts += [] if self.data.get("edge_weight") is None else [self.data.edge_weight]
        for part in parts:
            mark.update(str(tuple(part.shape)).encode())
            mark.update(part.contiguous().numpy().reshape(-1).view(np.uint8).data)
        return mark.hexdigest()


def dense_rows(x: Tensor, rows: int) -> Iterator[np.ndarray]:
    """A matrix, dense or CSR, as dense blocks of at most so many rows."""
    for first in range(0, x.shape[0], rows):
        last = min(first + rows, x.shape[0])
        if x.layout == torch.strided:
            yield x[first:last].numpy()
            continue
        start, stop = int(x.crow_indices()[first]), int(x.crow_indices()[last])
        block = np.zeros((last - first, x.shape[1]), np.float32)
        row = np.repeat(np.arange(last - first), x.crow_indices()[first : last + 1].diff().numpy())
        block[row, x.col_indices()[start:stop].numpy()] = x.values()[start:stop].numpy()
        yield block
