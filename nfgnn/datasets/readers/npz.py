"""A single ``.npz`` file, with the keys of the heterophilous-graphs study or of the CSR files of ``gnn-benchmark``."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch_geometric.data import Data

if TYPE_CHECKING:
    from nfgnn.datasets.registry import Entry


def read_npz_entry(entry: "Entry", folder: Path) -> Data:
    """Read a registered dataset that is one ``.npz`` file."""
    return read_npz(folder / entry.required[0])


def read_npz(path: Path) -> Data:
    with np.load(path, allow_pickle=False) as file:
        data = Data(
            x=torch.from_numpy(file["node_features"]),
            edge_index=torch.from_numpy(file["edges"].T),
            y=torch.from_numpy(file["node_labels"]),
        )
        for key in ("train", "val", "test"):
            data[f"{key}_mask"] = torch.from_numpy(file[f"{key}_masks"].T)
    return data
