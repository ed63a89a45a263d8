"""One's own graph: a table of nodes and a table of links.

Nodes have an ``id``, a ``label`` (may be missing), perhaps a ``split`` (train, val, test), and every other
column is a feature. Links have a ``source``, a ``target`` and perhaps a ``weight``. All names can be changed
with :class:`Columns`.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch_geometric.data import Data

from nfgnn.data.labels import MISSING, encode_labels
from nfgnn.data.readers.ids import NodeIds
from nfgnn.data.readers.tables import find_table, read_table
from nfgnn.data.readers.values import feature_matrix, numbers
from nfgnn.errors import UserError

SPLITS = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "test": "test",
}


@dataclass(frozen=True)
class Columns:
    """Names of the columns that mean something; an optional one that keeps its default name may be absent."""

    id_column: str = "id"
    label_column: str = "label"
    split_column: str = "split"
    source_column: str = "source"
    target_column: str = "target"
    weight_column: str = "weight"
    drop_columns: tuple[str, ...] = ()

    def text(self) -> tuple[str, ...]:
        """The columns that are text in a CSV file."""
        return (
            self.id_column,
            self.label_column,
            self.split_column,
            self.source_column,
            self.target_column,
        )


def read_folder(folder: Path, columns: Columns) -> Data:
    """Read ``nodes`` and ``edges`` (CSV or Parquet) from a folder."""
    nodes, edges = find_table(folder, "nodes"), find_table(folder, "edges")
    return graph_from_tables(
        read_table(nodes, columns.text()),
        read_table(edges, columns.text()),
        columns,
        nodes.name,
        edges.name,
    )


def graph_from_tables(
    nodes: pa.Table,
    edges: pa.Table,
    columns: Columns,
    nodes_name: str = "nodes",
    edges_name: str = "edges",
) -> Data:
    """Two tables → a graph that has not been through the gate yet."""
    if nodes.num_rows == 0:
        raise UserError(f"{nodes_name}: there is no row, so the graph has no nodes.")
    with ThreadPoolExecutor(
        1
    ) as beside:  # features and links are the bulk of the work, and independent
        features = beside.submit(_features, nodes, columns, nodes_name)
        data = _linked(nodes, edges, columns, nodes_name, edges_name)
        data.x, data.feature_names = features.result()
    labels = _optional(nodes, columns, "label_column", nodes_name)
    if labels is not None:
        data.y, data.class_names = _labels(labels, f"{nodes_name}, column {columns.label_column!r}")
    splits = _optional(nodes, columns, "split_column", nodes_name)
    if splits is not None:
        _add_masks(data, splits, columns.split_column, nodes_name)
    weight = _optional(edges, columns, "weight_column", edges_name)
    if weight is not None:
        data.edge_weight = numbers(weight, columns.weight_column, edges_name, "weight")
    return data


def _linked(
    nodes: pa.Table, edges: pa.Table, columns: Columns, nodes_name: str, edges_name: str
) -> Data:
    """The graph with its ids and links."""
    ids = NodeIds(
        _column(nodes, columns.id_column, nodes_name, "id_column"), columns.id_column, nodes_name
    )
    ends = np.empty((2, edges.num_rows), dtype=np.int32 if nodes.num_rows < 2**31 else np.int64)
    for place, role in zip(ends, ("source", "target")):
        name = getattr(columns, f"{role}_column")
        ids.find(_column(edges, name, edges_name, f"{role}_column"), place, name, edges_name)
    return Data(edge_index=ends, node_ids=ids.ids.to_numpy(zero_copy_only=False))


def _column(table: pa.Table, name: str, file: str, option: str) -> pa.ChunkedArray:
    if name not in table.column_names:
        found = ", ".join(table.column_names[:12]) + (", …" if len(table.column_names) > 12 else "")
        role = option.split("_")[0]
        raise UserError(
            f"{file}: there is no column {name!r} (found: {found}); rename it, or say --column {role}=NAME "
            f"(in Python: {option}=NAME)."
        )
    return table[name]


def _optional(table: pa.Table, columns: Columns, option: str, file: str) -> pa.ChunkedArray | None:
    """A column that may be absent, unless the user has named it."""
    name = getattr(columns, option)
    named = name != getattr(Columns, option)
    return _column(table, name, file, option) if named or name in table.column_names else None


def _features(
    nodes: pa.Table, columns: Columns, file: str
) -> tuple[torch.Tensor | None, list[str]]:
    for name in columns.drop_columns:
        _column(nodes, name, file, "drop_columns")
    taken = {columns.id_column, columns.label_column, columns.split_column, *columns.drop_columns}
    kept = [name for name in nodes.column_names if name not in taken]
    return feature_matrix(nodes, kept, file) if kept else (None, [])


def _labels(labels: pa.ChunkedArray, where: str) -> tuple[torch.Tensor, list[str]]:
    y, names = encode_labels(labels, where)
    return torch.from_numpy(y), names


def _add_masks(data: Data, splits: pa.ChunkedArray, name: str, file: str) -> None:
    words = pc.utf8_lower(pc.utf8_trim_whitespace(pc.cast(splits, pa.string()))).to_pylist()
    none = {word.lower() for word in MISSING} | {None}
    parts = [None if word in none else SPLITS.get(word, word) for word in words]
    for row, part in enumerate(parts, start=1):
        if part not in (None, "train", "val", "test"):
            raise UserError(
                f"{file}: row {row}, column {name!r}: {part!r} is not train, val, test or empty."
            )
    for key in ("train", "val", "test"):
        data[f"{key}_mask"] = torch.tensor([part == key for part in parts])
