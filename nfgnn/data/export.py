"""Write a graph to files: a folder of CSV or Parquet tables, or one ``.npz``.

Every edge is written once. Values survive the round trip exactly, so a saved model gives the same
predictions.
"""

from collections.abc import Collection
from contextlib import AbstractContextManager
from filecmp import cmpfiles
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from pyarrow import csv, parquet
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data.labels import UNLABELLED
from nfgnn.data.names import class_names_of, names_of
from nfgnn.data.readers.node_ids import ids_as_array
from nfgnn.data.synthetic import mixed_graph
from nfgnn.errors import UserError
from nfgnn.existing_output import output_file
from nfgnn.files import atomic_folder

FORMATS = ("csv", "parquet", "npz")
# Columns of the nodes that are never features when the tables are read again.
_RESERVED = frozenset(("id", "label", "split"))


def export_graph(
    data: Data, path: str | Path, file_format: str = "csv", overwrite: bool = False
) -> Path:
    """Write a validated graph; every file is written atomically.

    Args:
        data: a graph from :func:`nfgnn.data.load_dataset`.
        path: the folder for the tables ``nodes`` and ``edges``, or the ``.npz`` file.
        file_format: ``"csv"``, ``"parquet"`` or ``"npz"``.
        overwrite: replace existing files with other content.
    """
    path = Path(path)
    if file_format not in FORMATS:
        raise UserError(f"graphs are exported as {', '.join(FORMATS)}, not as {file_format!r}.")
    if file_format == "npz":
        path.parent.mkdir(parents=True, exist_ok=True)
        with _output(path, overwrite) as partial, partial.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **_arrays(data))
        return path
    path.mkdir(parents=True, exist_ok=True)
    write = csv.write_csv if file_format == "csv" else parquet.write_table
    tables = {"nodes": nodes_table(data), "edges": edges_table(data)}
    for name, table in tables.items():
        with _output(path / f"{name}.{file_format}", overwrite) as partial:
            write(table, str(partial))
    return path


def _output(path: Path, overwrite: bool) -> AbstractContextManager[Path]:
    """Return the context of a file to write. Nothing tells our files from those of others."""
    return output_file(path, lambda _: True, "a graph", overwrite)


def write_template(folder: str | Path) -> Path:
    """Write an example of ``nodes.csv`` and ``edges.csv`` to copy and fill in.

    It has 200 people of three interests; the interest of every tenth person is unknown.
    """
    folder = Path(folder)
    if not folder.name:
        raise UserError(f"{folder} is not a new folder; choose a path such as my-graph.")
    data = mixed_graph(
        200,
        3,
        degree=8,
        num_features=6,
        signal=0.8,
        shares=(1, 0, 0),
        homophily=(0.8, 0),
        seed=7,
    )
    data.class_names = ["art", "music", "science"]
    data.feature_names = [f"answer_{i + 1}" for i in range(data.num_features)]
    data.node_ids = np.array([f"person-{i:03d}" for i in range(data.num_nodes)])
    data.x = torch.round(data.x, decimals=2)
    data.y[::10] = UNLABELLED
    with atomic_folder(folder) as partial:
        export_graph(data, partial, "csv")
        if folder.exists() and _holds_other_files(folder, partial):
            raise UserError(f"{folder} exists and is not an empty folder; choose a new one.")
    return folder


def _holds_other_files(folder: Path, template: Path) -> bool:
    """Whether a folder holds anything but the files of the template."""
    if not folder.is_dir():
        return True
    names = [path.name for path in folder.iterdir()]
    _, different, unreadable = cmpfiles(folder, template, names, shallow=False)
    return bool(different or unreadable)


def nodes_table(data: Data) -> pa.Table:
    """Return the nodes as a table: ``id``, ``label``, ``split`` if there is one, and features."""
    names = [*class_names_of(data), None]  # -1 is the last entry
    labels = [names[c] for c in data.y.tolist()]
    columns = {"id": _ids(data), "label": pa.array(labels, pa.string())}
    train_mask = data.get("train_mask")
    if train_mask is not None and train_mask.dim() == 1:
        columns["split"] = _split_column(data)
    features = data.x.to_dense().t().contiguous().numpy()
    titles = names_of(data, "feature_names") or []
    if len(titles) != len(features):
        titles = [f"x{i}" for i in range(len(features))]
    for title, values in zip(titles, features, strict=True):
        # Reading removes blanks around names, so names that differ only by blanks are the same.
        columns[_unused(title.strip(), _RESERVED | columns.keys())] = pa.array(values)
    return pa.table(columns)


def _unused(title: str, taken: Collection[str]) -> str:
    """Return the title of a feature, changed if another column has it."""
    found = title
    number = 1
    while found in taken:
        number += 1
        found = f"{title}_{number}"
    return found


def edges_table(data: Data) -> pa.Table:
    """Return the edges as a table, each once: ``source``, ``target`` and perhaps ``weight``."""
    once = data.edge_index[0] < data.edge_index[1]
    ids = _ids(data)
    columns = {}
    for name, end in zip(("source", "target"), data.edge_index[:, once]):
        columns[name] = ids.take(pa.array(end.numpy()))
    if data.get("edge_weight") is not None:
        columns["weight"] = pa.array(data.edge_weight[once].numpy())
    return pa.table(columns)


def _ids(data: Data) -> pa.Array:
    ids = data.get("node_ids")
    if ids is None:
        ids = np.arange(data.num_nodes)
    return ids_as_array(ids)


def _split_column(data: Data) -> pa.Array:
    words = np.full(data.num_nodes, None, dtype=object)
    for part in ("train", "val", "test"):
        mask = data.get(f"{part}_mask")
        if mask is not None:
            words[mask.numpy()] = part
    return pa.array(words, pa.string())


def _arrays(data: Data) -> dict[str, Any]:
    once = data.edge_index[0] < data.edge_index[1]
    arrays: dict[str, Any] = {"edges": data.edge_index[:, once].t().numpy()}
    class_names = class_names_of(data)
    if class_names:
        names = np.array([*class_names, ""])  # -1 is the last entry
        arrays["node_labels"] = names[data.y.numpy()]
    else:
        arrays["node_labels"] = np.full(data.num_nodes, UNLABELLED)
    arrays |= _feature_arrays(data.x)
    if data.get("edge_weight") is not None:
        arrays["edge_weights"] = data.edge_weight[once].numpy()
    for part in ("train", "val", "test"):
        mask = data.get(f"{part}_mask")
        if mask is not None:
            arrays[f"{part}_masks"] = mask.t().numpy() if mask.dim() == 2 else mask.numpy()
    feature_names = names_of(data, "feature_names")
    if feature_names:
        arrays["feature_names"] = np.array(feature_names, dtype=str)
    if data.get("node_ids") is not None:
        ids = ids_as_array(data.node_ids).to_numpy(zero_copy_only=False)
        arrays["node_ids"] = ids.astype(str) if ids.dtype == object else ids
    return arrays


def _feature_arrays(x: Tensor) -> dict[str, np.ndarray]:
    if x.layout == torch.strided:
        return {"node_features": x.numpy()}
    return {
        "node_features_data": x.values().numpy(),
        "node_features_indices": x.col_indices().numpy(),
        "node_features_indptr": x.crow_indices().numpy(),
        "node_features_shape": np.array(x.shape),
    }
