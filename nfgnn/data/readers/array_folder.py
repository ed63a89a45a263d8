"""A folder with one ``.npy`` file for each array of an ``.npz`` graph.

A zip archive is written from one end to the other, and read for its checksum. Separate files have
no such limits, so this is the layout of graphs with billions of edges: ``edges.npy`` [E, 2],
``node_features.npy``, ``node_labels.npy`` and perhaps ``train_mask.npy``, ``val_mask.npy`` and
``test_mask.npy``.
"""

from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from nfgnn.data.readers.npz import ARRAYS, graph_from_arrays


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
