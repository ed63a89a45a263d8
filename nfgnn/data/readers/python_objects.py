"""Graphs from Python objects: NetworkX, SciPy and pandas, without importing NetworkX or pandas."""

from typing import Any

import numpy as np
import pyarrow as pa
import torch
from scipy import sparse
from torch_geometric.data import Data

from nfgnn.data.labels import encode_labels
from nfgnn.data.messages import first_line
from nfgnn.data.readers.columns import Columns
from nfgnn.data.readers.feature_columns import TableEncoding
from nfgnn.data.readers.graph_tables import graph_from_tables
from nfgnn.errors import UserError


def is_networkx(source: Any) -> bool:
    """Return whether an object has the interface of a NetworkX graph."""
    interface = ("nodes", "edges", "is_directed", "is_multigraph")
    return all(hasattr(source, name) for name in interface)


def from_networkx(
    graph: Any,
    columns: Columns,
    x: Any = None,
    y: Any = None,
    encoding: TableEncoding | None = None,
) -> Data:
    """Convert a NetworkX graph.

    Node attributes are columns, as in a table; the attribute ``x`` may be a vector.
    """
    nodes = list(graph.nodes)
    table = {"id": pa.array(range(len(nodes)))}
    attributes = {key: None for _, values in graph.nodes(data=True) for key in values}
    for key in attributes:
        if str(key) == "id":
            continue  # Nodes are identified by their names; an id is no feature either.
        values = [graph.nodes[node].get(key) for node in nodes]
        table[str(key)] = _to_arrow(values, f"node attribute {key!r}")
    if "y" in table and columns.label_column not in table:
        table[columns.label_column] = table.pop("y")
    plain = Columns(
        label_column=columns.label_column,
        split_column=columns.split_column,
        drop_columns=columns.drop_columns,
        category_columns=columns.category_columns,
    )
    where = "the NetworkX graph"
    edges = _networkx_edges(graph, nodes, columns.weight_column)
    data = graph_from_tables(pa.table(table), edges, plain, where, where, encoding)
    data.node_ids = nodes
    return _with_arrays(data, x, y)


def from_scipy(adjacency: Any, x: Any = None, y: Any = None) -> Data:
    """Convert a sparse adjacency matrix; entries other than 1 are weights."""
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise UserError(
            f"the adjacency matrix has shape {list(adjacency.shape)}; it must be square."
        )
    entries = sparse.coo_array(adjacency)
    edge_index = np.stack(entries.coords).astype(np.int64)
    data = Data(edge_index=torch.from_numpy(edge_index), num_nodes=adjacency.shape[0])
    if entries.dtype != bool and not bool((entries.data == 1).all()):
        data.edge_weight = torch.from_numpy(entries.data.astype(np.float64))
    return _with_arrays(data, x, y)


def from_frames(
    nodes: Any, edges: Any, columns: Columns, encoding: TableEncoding | None = None
) -> Data:
    """Convert two data frames; without an id column the index of ``nodes`` is the id."""
    if nodes is None or edges is None:
        raise UserError("both data frames are required: load_dataset(nodes=…, edges=…).")
    table = _table(nodes)
    if columns.id_column not in table.column_names and hasattr(nodes, "index"):
        ids = _to_arrow(list(nodes.index), "the index of nodes")
        table = table.add_column(0, columns.id_column, ids)
    return graph_from_tables(table, _table(edges), columns, encoding=encoding)


def _networkx_edges(graph: Any, nodes: list[Any], weight_column: str) -> pa.Table:
    number = {node: i for i, node in enumerate(nodes)}
    edges = list(graph.edges(data=True))
    table = {
        "source": pa.array([number[source] for source, _, _ in edges], pa.int64()),
        "target": pa.array([number[target] for _, target, _ in edges], pa.int64()),
    }
    weights = [values.get(weight_column) for _, _, values in edges]
    if any(weight is not None for weight in weights):
        # As in NetworkX, an edge without the attribute has weight 1.
        weights = [1 if weight is None else weight for weight in weights]
        table["weight"] = _to_arrow(weights, "edge attribute 'weight'")
    return pa.table(table)


def _table(frame: Any) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    try:
        if hasattr(frame, "to_arrow"):  # polars
            return frame.to_arrow()
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, AttributeError, TypeError) as error:
        raise UserError(f"the data frame cannot be read as a table: {first_line(error)}") from None


def _to_arrow(values: list[Any], where: str) -> pa.Array:
    """Convert values of one kind; values of several kinds become text."""
    plain = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
    try:
        return pa.array(plain, from_pandas=True)
    except pa.ArrowException:
        pass
    if any(isinstance(value, list | tuple) for value in plain):
        raise UserError(f"{where} has values of several kinds; use one kind for all nodes.")
    return pa.array([None if value is None else str(value) for value in plain])


def _with_arrays(data: Data, x: Any, y: Any) -> Data:
    """Add features and labels that are passed separately; they take precedence."""
    if x is not None:
        if not isinstance(x, torch.Tensor) and not sparse.issparse(x):
            x = np.asarray(x)
        data.x = x
        data.feature_names = []
        data.feature_encoding = None
        data.notes = []
    if y is not None:
        if isinstance(y, torch.Tensor):
            y = y.numpy(force=True)
        # A list may contain labels of several types, which an array would turn into text.
        if not isinstance(y, list):
            y = np.asarray(y)
        codes, data.class_names = encode_labels(y, "y")
        data.y = torch.from_numpy(codes)
    return data
