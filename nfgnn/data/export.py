"""A graph back to files: a folder of CSV or Parquet tables, or one ``.npz``.

Every link is written once. Values survive the round trip exactly, so a saved model predicts the same.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from pyarrow import csv, parquet
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data.labels import UNLABELLED
from nfgnn.errors import UserError

FORMATS = ("csv", "parquet", "npz")


def export_graph(data: Data, path: str | Path, file_format: str = "csv") -> Path:
    """Write a checked graph.

    Args:
        data: a graph from :func:`load_dataset`.
        path: the folder to write ``nodes`` and ``edges`` into, or the ``.npz`` file.
        file_format: ``"csv"``, ``"parquet"`` or ``"npz"``.
    """
    path = Path(path)
    if file_format not in FORMATS:
        raise UserError(f"graphs are exported as {', '.join(FORMATS)}, not as {file_format!r}.")
    if file_format == "npz":
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, allow_pickle=False, **_arrays(data))
        return path
    path.mkdir(parents=True, exist_ok=True)
    write = csv.write_csv if file_format == "csv" else parquet.write_table
    write(nodes_table(data), str(path / f"nodes.{file_format}"))
    write(edges_table(data), str(path / f"edges.{file_format}"))
    return path


def nodes_table(data: Data) -> pa.Table:
    """The nodes as a table: ``id``, ``label``, ``split`` if there is one split, and the features."""
    names = [*data.class_names, None]
    columns = {
        "id": _ids(data),
        "label": pa.array([names[c] for c in data.y.tolist()], pa.string()),
    }
    train = data.get("train_mask")
    if train is not None and train.dim() == 1:
        columns["split"] = _split_words(data)
    features = data.x.to_dense().t().contiguous().numpy()
    titles = data.get("feature_names") or [f"x{i}" for i in range(len(features))]
    return pa.table(columns | {str(title): pa.array(row) for title, row in zip(titles, features)})


def edges_table(data: Data) -> pa.Table:
    """The links as a table, each once: ``source``, ``target`` and, if there are weights, ``weight``."""
    once = data.edge_index[0] < data.edge_index[1]
    ids = _ids(data)
    ends = [ids.take(pa.array(end.numpy())) for end in data.edge_index[:, once]]
    columns = {"source": ends[0], "target": ends[1]}
    if data.get("edge_weight") is not None:
        columns["weight"] = pa.array(data.edge_weight[once].numpy())
    return pa.table(columns)


def _ids(data: Data) -> pa.Array:
    ids = data.get("node_ids")
    return pa.array(np.arange(data.num_nodes) if ids is None else ids)


def _split_words(data: Data) -> pa.Array:
    words = np.full(data.num_nodes, None, dtype=object)
    for part in ("train", "val", "test"):
        mask = data.get(f"{part}_mask")
        if mask is not None:
            words[mask.numpy()] = part
    return pa.array(words, pa.string())


def _arrays(data: Data) -> dict[str, Any]:
    once = data.edge_index[0] < data.edge_index[1]
    arrays: dict[str, Any] = {"edges": data.edge_index[:, once].t().numpy()}
    labels = np.array([*data.class_names, ""])[data.y.numpy()]  # the empty name is where -1 points
    arrays["node_labels"] = labels if data.class_names else np.full(data.num_nodes, UNLABELLED)
    arrays |= _feature_arrays(data.x)
    if data.get("edge_weight") is not None:
        arrays["edge_weights"] = data.edge_weight[once].numpy()
    for part in ("train", "val", "test"):
        mask = data.get(f"{part}_mask")
        if mask is not None:
            arrays[f"{part}_masks"] = mask.t().numpy() if mask.dim() == 2 else mask.numpy()
    if data.get("feature_names"):
        arrays["feature_names"] = np.array(data.feature_names, dtype=str)
    if data.get("node_ids") is not None:
        ids = np.asarray(data.node_ids)
        arrays["node_ids"] = ids.astype(str) if ids.dtype == object else ids
    return arrays


def _feature_arrays(x: Tensor) -> dict[str, np.ndarray]:
    if x.layout != torch.sparse_csr:
        return {"node_features": x.numpy()}
    return {
        "node_features_data": x.values().numpy(),
        "node_features_indices": x.col_indices().numpy(),
        "node_features_indptr": x.crow_indices().numpy(),
        "node_features_shape": np.array(x.shape),
    }
