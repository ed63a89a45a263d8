"""``.mat`` files of the LINKX study that PyG has no class for: ``edge_index``, ``node_feat``, ``label``."""

from pathlib import Path

import torch
from torch_geometric.data import Data

from nfgnn.data.entry import Entry


def read_linkx_mat(entry: Entry, folder: Path) -> Data:
    """Read pokec, which is laid out as genius is."""
    from scipy.io import loadmat

    mat = loadmat(folder / entry.required[0])
    return Data(
        x=torch.from_numpy(mat["node_feat"]),
        edge_index=torch.from_numpy(mat["edge_index"].astype("int64")),
        y=torch.from_numpy(mat["label"].reshape(-1).astype("int64")),
    )
