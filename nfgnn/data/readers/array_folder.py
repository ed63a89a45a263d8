"""A folder with one ``.npy`` file for each array of an ``.npz`` graph.

A zip archive is written from one end to the other, and read for its checksum. Separate files have
no such limits, so this is the layout of graphs with billions of edges: ``edges.npy`` [E, 2],
``node_features.npy``, ``node_labels.npy`` and perhaps ``train_mask.npy``, ``val_mask.npy`` and
``test_mask.npy``.
"""

from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from nfgnn.data.labels import encode_labels
from nfgnn.data.large_graph import LargeGraph
from nfgnn.data.paths import files_fingerprint
from nfgnn.data.readers.mapped_arrays import edge_blocks, row_blocks
from nfgnn.data.readers.npz import ARRAYS, graph_from_arrays
from nfgnn.errors import UserError
from nfgnn.npyfile import NpyFile

_REQUIRED = ("edges", "node_features", "node_labels")


def is_array_folder(path: Path) -> bool:
    """Whether a folder holds the arrays of a graph."""
    return (path / "edges.npy").is_file()


def read_array_folder(folder: Path) -> Data:
    """Read a graph into memory."""
    arrays = {}
    for file in sorted(folder.glob("*.npy")):
        if file.stem in ARRAYS:
            arrays[file.stem] = np.load(file, allow_pickle=False)
    return graph_from_arrays(arrays, folder)


def open_array_folder(folder: Path) -> LargeGraph:
    """Open a graph for reading in blocks."""
    edges, x, labels = (_map(folder / f"{name}.npy") for name in _REQUIRED)
    if x.ndim != 2:
        raise UserError(
            f"{folder}: node_features has the shape {list(x.shape)}; save a matrix "
            "[nodes, features]."
        )
    y, class_names = encode_labels(np.array(labels), f"{folder.name}, node_labels")
    masks = {}
    for name in ("train_mask", "val_mask", "test_mask"):
        if (folder / f"{name}.npy").is_file():
            masks[name] = np.array(_map(folder / f"{name}.npy"), dtype=bool)
    return LargeGraph(
        name=folder.name,
        source=str(folder.resolve()),
        fingerprint=files_fingerprint(*(folder / f"{name}.npy" for name in _REQUIRED)),
        num_nodes=len(x),
        num_features=x.shape[1],
        num_edges=edges.size // 2,
        y=y,
        class_names=class_names,
        edges=edge_blocks(edges, folder.name),
        features=lambda rows: row_blocks(x, rows, folder.name),
        masks=masks,
    )


def _map(path: Path) -> np.ndarray:
    """Map an array after checking that the file is complete."""
    with NpyFile.open(path) as file:
        return np.memmap(path, file.dtype, "r", file.start, file.shape)
