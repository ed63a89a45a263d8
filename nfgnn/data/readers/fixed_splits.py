"""The published splits of the LINKX study: an ``.npy`` file with one dictionary per split.

The dictionaries map ``train``, ``valid`` and ``test`` to node numbers. NumPy saves them as a
pickle, which :mod:`~nfgnn.data.readers.restricted_pickle` reads without running code.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from nfgnn.data.memory import require_memory
from nfgnn.data.messages import first_line
from nfgnn.data.readers.npz_members import read_header
from nfgnn.data.readers.restricted_pickle import PickledArray, PickledTensor, unpickle
from nfgnn.errors import UserError

_KEYS = {"train_mask": "train", "val_mask": "valid", "test_mask": "test"}
_AGAIN = "download the file again."


def add_fixed_splits(data: Data, path: Path) -> Data:
    """Set ``train_mask``, ``val_mask`` and ``test_mask`` [nodes, splits] of a labelled graph."""
    num_nodes = len(data.y)  # the features may be a SciPy matrix, which PyG cannot count
    splits = _read_splits(path)
    require_memory(3 * num_nodes * len(splits), str(path))
    masks = {name: torch.zeros(num_nodes, len(splits), dtype=torch.bool) for name in _KEYS}
    for column, split in enumerate(splits):
        for name, nodes in split.items():
            if len(nodes) and (nodes.min() < 0 or nodes.max() >= num_nodes):
                raise UserError(
                    f"{path}: split {column} contains node {nodes.max()}, but the graph has "
                    f"{num_nodes:,} nodes; {_AGAIN}"
                )
            masks[name][torch.from_numpy(nodes), column] = True
    for name, mask in masks.items():
        data[name] = mask
    return data


def _read_splits(path: Path) -> list[dict[str, np.ndarray]]:
    """Return the nodes of every mask, split by split."""
    try:
        require_memory(path.stat().st_size, str(path))
        with path.open("rb") as file:
            read_header(file)
            content = unpickle(file)
        if not isinstance(content, PickledArray):
            raise ValueError("it holds no array of dictionaries")
        splits = [_nodes(split) for split in content.to_list()]
        if not splits:
            raise ValueError("it holds no split")
        return splits
    except UserError:
        raise
    except Exception as error:  # a damaged or hostile pickle can fail in any way
        raise UserError(
            f"{path}: cannot be read as fixed splits: {first_line(error)}. Only dictionaries of "
            f"node numbers are accepted, and no code was run; {_AGAIN}"
        ) from None


def _nodes(split: Any) -> dict[str, np.ndarray]:
    if not isinstance(split, dict) or not set(_KEYS.values()) <= set(split):
        raise ValueError("a split has no nodes for train, valid and test")
    nodes = {}
    for name, key in _KEYS.items():
        values = split[key]
        if not isinstance(values, PickledArray | PickledTensor):
            raise ValueError(f"the nodes of {key!r} are not an array")
        numbers = values.to_numpy()
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise ValueError(f"the nodes of {key!r} are not a list of whole numbers")
        nodes[name] = numbers.astype(np.int64)
    return nodes
