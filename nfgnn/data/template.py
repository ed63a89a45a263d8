"""A small example of one's own graph, to copy and fill: ``nfgnn datasets --template DIR``."""

from pathlib import Path

import numpy as np
import torch

from nfgnn.data.export import export_graph
from nfgnn.data.synthetic import mixed_graph
from nfgnn.errors import UserError

_CLASSES = ["art", "music", "science"]


def write_template(folder: str | Path) -> Path:
    """Write ``nodes.csv`` and ``edges.csv`` of 200 people, three interests, every tenth of them unknown."""
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists and is not an empty folder; name a new one.")
    data = mixed_graph(
        200,
        len(_CLASSES),
        degree=8,
        num_features=6,
        signal=0.8,
        shares=(1, 0, 0),
        homophily=(0.8, 0),
        seed=7,
    )
    data.class_names = _CLASSES
    data.feature_names = [f"answer_{i + 1}" for i in range(data.num_features)]
    data.node_ids = np.array([f"person-{i:03d}" for i in range(data.num_nodes)])
    data.x = torch.round(data.x, decimals=2)
    data.y[::10] = -1
    return export_graph(data, folder, "csv")
