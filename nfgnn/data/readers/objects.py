"""Graphs that live in Python: NetworkX, SciPy and pandas, told apart without importing them."""

from typing import Any

import numpy as np
import pyarrow as pa
import torch
from scipy import sparse
from torch_geometric.data import Data

from nfgnn.data.labels import encode_labels
from nfgnn.data.readers.folder import Columns, graph_from_tables
from nfgnn.errors import UserError


def is_networkx(source: Any) -> bool:
    """Whether an object walks like a NetworkX graph."""
    return all(hasattr(source, name) for name in ("nodes", "edges", "is_directed", "is_multigraph"))


def from_networkx(graph: Any, columns: Columns, x: Any = None, y: Any = None) -> Data:
    """A NetworkX graph. Node attributes are columns, as in a table; the attribute ``x`` may be a vector."""
    nodes = list(graph.nodes)
    number = {node: i for i, node in enumerate(nodes)}
    attributes = {key: None for _, values in graph.nodes(data=True) for key in values}
    table = {"id": pa.array(range(len(nodes)))}
    for key in attributes:
        table[str(key)] = _arrow(
            [graph.nodes[node].get(key) for node in nodes], f"node attribute {key!r}"
        )
    links = list(graph.edges(data=True))
    edges = {
        "source": pa.array([number[a] for a, _, _ in links], pa.int64()),
        "target": pa.array([number[b] for _, b, _ in links], pa.int64()),
    }
    weights = [values.get(columns.weight_column) for _, _, values in links]
    if any(weight is not None for weight in weights):
        edges["weight"] = _arrow(
            [1 if weight is None else weight for weight in weights], "edge attribute 'weight'"
        )
    if "y" in table and columns.label_column not in table:
        table[columns.label_column] = table.pop("y")
    plain = Columns(
        label_column=columns.label_column,
        split_column=columns.split_column,
        drop_columns=columns.drop_columns,
    )
    data = graph_from_tables(
        pa.table(table), pa.table(edges), plain, "the NetworkX graph", "the NetworkX graph"
    )
    data.node_ids = nodes
    return _with_arrays(data, x, y)


def from_scipy(adjacency: Any, x: Any = None, y: Any = None) -> Data:
    """A sparse adjacency matrix; entries other than 1 are weights."""
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise UserError(
            f"the adjacency matrix has shape {list(adjacency.shape)}; it must be square."
        )
    links = sparse.coo_array(adjacency)
    row, col = (torch.from_numpy(np.asarray(end, dtype=np.int64)) for end in links.coords)
    data = Data(edge_index=torch.stack([row, col]), num_nodes=adjacency.shape[0])
    if links.dtype != bool and not bool((links.data == 1).all()):
        data.edge_weight = torch.from_numpy(links.data.astype(np.float64))
    return _with_arrays(data, x, y)


def from_frames(nodes: Any, edges: Any, columns: Columns) -> Data:
    """Two data frames; without an id column the index of ``nodes`` is the id."""
    if nodes is None or edges is None:
        raise UserError("data frames come in pairs: load_dataset(nodes=…, edges=…).")
    table = _table(nodes)
    if columns.id_column not in table.column_names and hasattr(nodes, "index"):
        table = table.add_column(
            0, columns.id_column, _arrow(list(nodes.index), "the index of nodes")
        )
    return graph_from_tables(table, _table(edges), columns)


def _table(frame: Any) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    try:
        return (
            frame.to_arrow()
            if hasattr(frame, "to_arrow")
            else pa.Table.from_pandas(frame, preserve_index=False)
        )
    except (pa.ArrowException, AttributeError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"the data frame cannot be read as a table: {reason}") from None


def _arrow(values: list[Any], where: str) -> pa.Array:
    try:
        return pa.array(
            [value.tolist() if isinstance(value, np.ndarray) else value for value in values],
            from_pandas=True,
        )
    except pa.ArrowException:
        if any(isinstance(value, list | tuple | np.ndarray) for value in values):
            raise UserError(
                f"{where} holds values of several kinds; give every node the same kind."
            ) from None
        return pa.array([None if value is None else str(value) for value in values])


def _with_arrays(data: Data, x: Any, y: Any) -> Data:
    """Features and labels given beside the graph take precedence."""
    if x is not None:
        data.x = x if isinstance(x, torch.Tensor) or sparse.issparse(x) else np.asarray(x)
        data.feature_names = []
    if y is not None:
        labels = y.numpy(force=True) if isinstance(y, torch.Tensor) else y
        codes, data.class_names = encode_labels(
            np.asarray(labels) if not isinstance(labels, list) else labels, "y"
        )
        data.y = torch.from_numpy(codes)
    return data
