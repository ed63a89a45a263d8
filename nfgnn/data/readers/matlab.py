"""The ``.mat`` files of the LINKX study: Facebook networks of US universities, genius and pokec.

The published splits, where their file is available, are the second of the files.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch_geometric.data import Data

from nfgnn.data.readers.fixed_splits import add_fixed_splits
from nfgnn.data.readers.mat_file import read_mat
from nfgnn.errors import UserError

_GENDER = 1  # column of ``local_info``: 1 and 2 are the classes, 0 means unknown


def read_facebook(folder: Path, files: tuple[str, ...]) -> Data:
    """Read a Facebook network: the adjacency matrix ``A`` and ``local_info`` [n, 7].

    The label is the gender. The features are the other columns, one-hot encoded.
    """
    path = folder / files[0]
    content = read_mat(path, ("A", "local_info"))
    transpose = content["A"].tocoo()
    edges = np.stack([transpose.col, transpose.row]).astype(np.int64)
    info = content["local_info"].astype(np.int64)
    if info.ndim != 2 or info.shape[1] <= _GENDER or info.shape[0] != transpose.shape[0]:
        raise UserError(
            f"{path}: local_info has shape {list(info.shape)}; [{transpose.shape[0]}, 7] is "
            "required; download the file again."
        )
    data = Data(
        x=_one_hot(np.delete(info, _GENDER, axis=1)),
        edge_index=torch.from_numpy(edges),
        y=torch.from_numpy(info[:, _GENDER] - 1),
    )
    return _with_splits(data, folder, files)


def read_linkx(folder: Path, files: tuple[str, ...]) -> Data:
    """Read genius or pokec: ``edge_index`` [2, E], ``node_feat`` [n, f] and ``label`` [1, n]."""
    content = read_mat(folder / files[0], ("edge_index", "node_feat", "label"))
    edges = content["edge_index"].astype(np.int64)
    labels = content["label"].reshape(-1).astype(np.int64)
    data = Data(
        x=torch.from_numpy(content["node_feat"]),
        edge_index=torch.from_numpy(edges),
        y=torch.from_numpy(labels),
    )
    return _with_splits(data, folder, files)


def _with_splits(data: Data, folder: Path, files: tuple[str, ...]) -> Data:
    for file in files[1:]:
        add_fixed_splits(data, folder / file)
    return data


def _one_hot(columns: np.ndarray) -> Any:
    """Encode every column by its distinct values, as one CSR matrix."""
    num_rows, num_columns = columns.shape
    indices = np.empty((num_rows, num_columns), dtype=np.int64)
    width = 0
    for place, column in enumerate(columns.T):
        distinct, codes = np.unique(column, return_inverse=True)
        indices[:, place] = width + codes
        width += len(distinct)
    values = np.ones(indices.size, dtype=np.float32)
    indptr = np.arange(0, indices.size + 1, num_columns)
    return sparse.csr_array((values, indices.reshape(-1), indptr), shape=(num_rows, width))
