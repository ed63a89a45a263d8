"""Nodes that are to be added to a graph that is known: a folder with their ``nodes`` and their ``edges``.

The tables are those of one's own graph (:mod:`nfgnn.data.readers.folder`); the ends of a link may also name
nodes of the known graph.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data.edges import undirected
from nfgnn.data.readers.folder import Columns
from nfgnn.data.readers.ids import NodeIds
from nfgnn.data.readers.tables import find_table, read_table
from nfgnn.data.readers.values import feature_matrix, numbers
from nfgnn.errors import UserError


def load_new_nodes(folder: str | Path, graph: Data, **options: Any) -> Data:
    """Read new nodes and their links.

    Args:
        folder: where ``nodes.csv`` (or ``.parquet``) and ``edges.csv`` lie. Nodes have an ``id`` and the features of
            the known graph; labels and splits are ignored.
        graph: the known graph.
        **options: names of columns, as for :func:`nfgnn.data.load_dataset`.

    Returns:
        ``x``, ``edge_index`` with every link once (numbers from ``graph.num_nodes`` on are the new nodes, in their
        order), ``edge_weight`` where the links have weights, ``node_ids``.
    """
    columns = Columns(**options)
    files = [find_table(Path(folder), stem) for stem in ("nodes", "edges")]
    nodes, edges = (read_table(file, columns.text()) for file in files)
    for table, file, names in (
        (nodes, files[0], [columns.id_column]),
        (edges, files[1], [columns.source_column, columns.target_column]),
    ):
        for name in names:
            if name not in table.column_names:
                raise UserError(
                    f"{file.name}: there is no column {name!r}; rename it, or say so with --column"
                )
    ids = _ids(graph, nodes[columns.id_column], columns, files[0].name)
    ends = np.empty((2, edges.num_rows), dtype=np.int64)
    for place, name in zip(ends, (columns.source_column, columns.target_column)):
        ids.find(edges[name], place, name, files[1].name)
    weight = None
    if columns.weight_column in edges.column_names:
        weight = numbers(
            edges[columns.weight_column], columns.weight_column, files[1].name, "weight"
        )
    edge_index, edge_weight, _ = undirected(ends[0], ends[1], len(ids.ids), weight)
    once = edge_index[0] < edge_index[1]
    added = Data(
        x=_features(nodes, columns, graph, files[0].name),
        edge_index=torch.from_numpy(edge_index[:, once]),
    )
    if edge_weight is not None:
        added.edge_weight = torch.from_numpy(edge_weight[once])
    added.node_ids = ids.ids.slice(graph.num_nodes).to_numpy(zero_copy_only=False)
    return added


def _ids(graph: Data, new: pa.ChunkedArray, columns: Columns, file: str) -> NodeIds:
    """The ids of the known graph, then the new ones."""
    known = graph.get("node_ids")
    old = pa.array(np.arange(graph.num_nodes) if known is None else known)
    fresh = new.combine_chunks()
    both = pa.concat_arrays([pc.cast(old, pa.string()), pc.cast(fresh, pa.string())])
    twice = pc.index_in(both.slice(len(old)), value_set=both.slice(0, len(old))).is_valid()
    if pc.any(twice).as_py():
        row = pc.index(twice, True).as_py()
        raise UserError(
            f"{file}: row {row + 1}, column {columns.id_column!r}: {fresh[row].as_py()!r} is already a node of the "
            "graph; new nodes need ids of their own"
        )
    return NodeIds(pa.chunked_array([both]), columns.id_column, f"{file} or the known graph")


def _features(nodes: pa.Table, columns: Columns, graph: Data, file: str) -> Tensor:
    taken = {columns.id_column, columns.label_column, columns.split_column, *columns.drop_columns}
    names = [name for name in nodes.column_names if name not in taken]
    x, found = feature_matrix(nodes, names, file)
    wanted = graph.get("feature_names") or found
    missing = [name for name in wanted if name not in found]
    if missing or len(wanted) != graph.num_features:
        raise UserError(
            f"{file}: the graph has {graph.num_features} features, the new nodes have {len(found)}"
            + (f"; missing: {', '.join(missing[:5])}" if missing else "")
        )
    return x[:, [found.index(name) for name in wanted]]
