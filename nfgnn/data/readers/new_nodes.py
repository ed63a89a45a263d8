"""Read nodes that are added to an existing graph, with their edges to it and to each other."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data.edges import check_weights, undirected
from nfgnn.data.features import find_nonfinite, nonfinite_error
from nfgnn.data.readers.columns import Columns, feature_matrix, numbers, optional, require
from nfgnn.data.readers.feature_columns import encode_table
from nfgnn.data.readers.graph_tables import find_edges
from nfgnn.data.readers.node_ids import NodeIds
from nfgnn.data.readers.tables import find_table, read_table
from nfgnn.errors import UserError


def load_new_nodes(folder: str | Path, graph: Data, **options: Any) -> Data:
    """Read new nodes and their edges.

    Args:
        folder: the folder of ``nodes.csv`` and ``edges.csv`` (or ``.parquet``). Nodes have an
            ``id`` and the features of the graph; labels and splits are ignored.
        graph: the existing graph.
        **options: names of columns, as for :func:`nfgnn.data.load_dataset`.

    Returns:
        ``x``; ``edge_index`` with every edge once, in which numbers from ``graph.num_nodes`` on are
        the new nodes, in their order; ``edge_weight`` if the edges have weights; ``node_ids``;
        ``notes`` about edges that were dropped.
    """
    columns = Columns(**options)
    nodes_file = find_table(Path(folder), "nodes")
    edges_file = find_table(Path(folder), "edges")
    nodes = read_table(nodes_file, (*columns.text, *columns.category_columns))
    edges = read_table(edges_file, columns.text)
    require(nodes.column_names, columns.id_column, nodes_file.name, "id")
    ids = _all_ids(graph, nodes[columns.id_column], columns.id_column, nodes_file.name)
    ends = find_edges(edges, ids, columns, edges_file.name)
    weight = optional(edges, columns.weight_column, "weight", edges_file.name)
    if weight is not None:
        weight = numbers(weight, columns.weight_column, edges_file.name, "weight")
        weight = check_weights(weight, edges.num_rows, edges_file.name)
    edge_index, edge_weight, notes = undirected(ends[0], ends[1], len(ids.ids), weight)
    once = edge_index[0] < edge_index[1]
    x, feature_notes = _features(nodes, columns, graph, nodes_file.name)
    new = Data(x=x, edge_index=torch.from_numpy(edge_index[:, once]))
    if edge_weight is not None:
        new.edge_weight = torch.from_numpy(edge_weight[once])
    # That an edge is listed once or twice does not matter here.
    dropped = [note for note in notes if note.startswith("dropped")]
    new.notes = [*feature_notes, *dropped]
    new.node_ids = ids.ids.slice(graph.num_nodes).to_numpy(zero_copy_only=False)
    return new


def _all_ids(graph: Data, column: pa.ChunkedArray, name: str, file: str) -> NodeIds:
    """Return the ids of the graph followed by the new ones."""
    old_ids = graph.get("node_ids")
    if old_ids is None:
        old_ids = np.arange(graph.num_nodes)
    # Ids are compared as text, because one source may have numbers and the other text.
    old = pc.cast(pa.array(old_ids), pa.string())
    new = pc.cast(column.combine_chunks(), pa.string())
    existing = pc.is_in(new, value_set=old)
    if pc.any(existing).as_py():
        row = pc.index(existing, True).as_py()
        raise UserError(
            f"{file}: row {row + 1}, column {name!r}: {new[row].as_py()!r} is already a node of "
            "the graph; new nodes need new ids"
        )
    return NodeIds(pa.chunked_array([old, new]), name, f"{file} or the known graph")


def _features(
    nodes: pa.Table, columns: Columns, graph: Data, file: str
) -> tuple[Tensor, list[str]]:
    """Return the features in the order of the graph's, and notes about their encoding."""
    names = columns.features(nodes.column_names)
    notes: list[str] = []
    encoding = graph.get("feature_encoding")
    if encoding is None:
        x, found = feature_matrix(nodes, names, file)
    else:
        encoded = encode_table(nodes, names, file, encoding=encoding)
        x = encoded.x
        found = encoded.names
        notes = encoded.notes
    place = find_nonfinite(x)
    if place is not None:
        raise nonfinite_error(x[place].item(), *place, file)
    wanted = graph.get("feature_names") or found
    missing = [name for name in wanted if name not in found]
    if missing or len(wanted) != graph.num_features:
        listed = f"; missing: {', '.join(missing[:5])}" if missing else ""
        raise UserError(
            f"{file}: the graph has {graph.num_features} features, "
            f"the new nodes have {len(found)}{listed}; use the columns of the graph"
        )
    return x[:, [found.index(name) for name in wanted]], notes
