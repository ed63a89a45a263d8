"""A graph as two tables: nodes and edges.

Nodes have an ``id``, perhaps a ``label`` and a ``split`` (train, val, test), and every other column
is a feature (:mod:`nfgnn.data.readers.feature_columns`). Edges have a ``source``, a ``target`` and
perhaps a ``weight``. :class:`Columns` changes the names. :func:`read_graph_folder` reads a graph
into memory, :func:`open_graph_folder` reads one in batches.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch_geometric.data import Data

from nfgnn.data.features import find_nonfinite, nonfinite_error
from nfgnn.data.labels import UNLABELLED, encode_labels
from nfgnn.data.large_graph import LargeGraph
from nfgnn.data.messages import counted, few
from nfgnn.data.paths import files_fingerprint
from nfgnn.data.problems import Problems
from nfgnn.data.readers.columns import (
    Columns,
    could_be_weight,
    feature_matrix,
    numbers,
    optional,
    require,
    split_codes,
    split_masks,
)
from nfgnn.data.readers.feature_columns import EncodedTable, TableEncoding, encode_table
from nfgnn.data.readers.node_ids import NodeIds
from nfgnn.data.readers.tables import (
    column_names,
    count_rows,
    find_table,
    read_batches,
    read_table,
)
from nfgnn.errors import UserError

_BATCH = 2**16  # rows


def read_graph_folder(
    folder: Path, columns: Columns, encoding: TableEncoding | None = None
) -> Data:
    """Read ``nodes`` and ``edges`` (CSV or Parquet) from a folder."""
    nodes = find_table(folder, "nodes")
    edges = find_table(folder, "edges")
    known = () if encoding is None else encoding.text_columns
    return graph_from_tables(
        read_table(nodes, (*columns.text, *columns.category_columns, *known)),
        read_table(edges, columns.text),
        columns,
        nodes.name,
        edges.name,
        encoding,
    )


def graph_from_tables(
    nodes: pa.Table,
    edges: pa.Table,
    columns: Columns,
    nodes_file: str = "nodes",
    edges_file: str = "edges",
    encoding: TableEncoding | None = None,
) -> Data:
    """Build a graph from two tables. All errors are reported together.

    Args:
        nodes: the table of nodes.
        edges: the table of edges.
        columns: names of columns.
        nodes_file: the source of the nodes, for error messages.
        edges_file: the source of the edges, for error messages.
        encoding: how an earlier table was encoded, for a graph to predict on.
    """
    if nodes.num_rows == 0:
        raise UserError(f"{nodes_file}: there are no rows, so the graph has no nodes; add some.")
    problems = Problems()
    data = Data()
    # Features and edges are most of the work, and independent of each other.
    with ThreadPoolExecutor(1) as thread:
        features = thread.submit(_features, nodes, columns, nodes_file, encoding)
        with problems.collect():
            require(nodes.column_names, columns.id_column, nodes_file, "id")
            ids = NodeIds(nodes[columns.id_column], columns.id_column, nodes_file)
            data.node_ids = ids.ids.to_numpy(zero_copy_only=False)
            data.edge_index = find_edges(edges, ids, columns, edges_file)
        with problems.collect():
            encoded = features.result()
            if encoded is not None:
                data.x = encoded.x
                data.notes = encoded.notes
                data.feature_encoding = encoded.encoding
            data.feature_names = [] if encoded is None else encoded.names
    with problems.collect():
        labels = optional(nodes, columns.label_column, "label", nodes_file)
        if labels is not None:
            where = f"{nodes_file}, column {columns.label_column!r}"
            y, data.class_names = encode_labels(labels, where)
            data.y = torch.from_numpy(y)
    with problems.collect():
        splits = optional(nodes, columns.split_column, "split", nodes_file)
        if splits is not None:
            codes = split_codes(splits, columns.split_column, nodes_file)
            for key, mask in split_masks(codes).items():
                data[key] = torch.from_numpy(mask)
    with problems.collect():
        weight = optional(edges, columns.weight_column, "weight", edges_file)
        if weight is not None:
            data.edge_weight = numbers(weight, columns.weight_column, edges_file, "weight")
    problems.raise_all()
    data.notes = [*data.get("notes", []), *_ignored_columns(edges, columns, edges_file)]
    return data


def _ignored_columns(edges: pa.Table, columns: Columns, file: str) -> list[str]:
    """Return a note about columns of the edges that are not read, such as amounts."""
    used = {columns.source_column, columns.target_column, columns.weight_column}
    ignored = [name for name in edges.column_names if name not in used]
    if not ignored:
        return []
    note = f"ignored {counted(len(ignored), 'column')} of {file}: {few(ignored)}"
    if columns.weight_column in edges.column_names:
        return [note]
    numeric = [name for name in ignored if could_be_weight(edges[name])]
    if len(numeric) == 1:
        note += f"; --column weight={numeric[0]} uses {numeric[0]} as the edge weight"
    elif numeric:
        note += f"; --column weight=NAME uses one of {few(numeric)} as the edge weight"
    return [note]


def find_edges(edges: pa.Table, ids: NodeIds, columns: Columns, file: str) -> np.ndarray:
    """Return the edges as node numbers [2, E]."""
    dtype = np.int32 if len(ids.ids) < 2**31 else np.int64
    edge_index = np.empty((2, edges.num_rows), dtype=dtype)
    names = {"source": columns.source_column, "target": columns.target_column}
    problems = Problems()
    for out, (role, name) in zip(edge_index, names.items()):
        with problems.collect():
            require(edges.column_names, name, file, role)
            ids.find(edges[name], out, name, file)
    problems.raise_all()
    return edge_index


def open_graph_folder(folder: Path, columns: Columns) -> LargeGraph:
    """Open ``nodes`` and ``edges`` (CSV or Parquet) of a folder for reading in batches.

    Ids that are not the row numbers 0, 1, 2, … are kept in memory, a few bytes per node.
    """
    nodes = find_table(folder, "nodes")
    edges = find_table(folder, "edges")
    names = columns.features(column_names(nodes))
    weighted = columns.weight_column in column_names(edges)

    def feature_batches(rows: int) -> Iterator[np.ndarray]:
        first = 0
        for batch in read_batches(nodes, names, rows):
            block = feature_matrix(batch, names, nodes.name)[0]
            # A number of the table may exceed float32.
            place = find_nonfinite(block)
            if place is not None:
                raise nonfinite_error(block[place].item(), first + place[0], place[1], nodes.name)
            first += len(block)
            yield block.numpy()

    feature_names = _feature_names(nodes, names)
    y, class_names, masks, numbered = _read_labels(nodes, columns)
    ids = None if numbered else _read_ids(nodes, columns)
    return LargeGraph(
        name=folder.resolve().name,
        source=str(folder.resolve()),
        fingerprint=files_fingerprint(nodes, edges),
        num_nodes=len(y),
        num_features=len(feature_names),
        num_edges=count_rows(edges),
        y=y,
        class_names=class_names,
        masks=masks,
        edges=lambda size: _edge_batches(edges, columns, size, ids),
        features=feature_batches,
        weighted=weighted,
        feature_names=feature_names,
        node_ids=None if ids is None else ids.ids,
    )


def _features(
    nodes: pa.Table, columns: Columns, file: str, encoding: TableEncoding | None
) -> EncodedTable | None:
    problems = Problems()
    for role, listed in (("drop", columns.drop_columns), ("category", columns.category_columns)):
        for name in listed:
            with problems.collect():
                require(nodes.column_names, name, file, role)
    names = columns.features(nodes.column_names)
    encoded = None
    with problems.collect():
        if names:
            encoded = encode_table(nodes, names, file, columns.category_columns, encoding)
    problems.raise_all()
    return encoded


def _feature_names(nodes: Path, names: list[str]) -> list[str]:
    """Return the names of the features, list columns unfolded."""
    if not names:
        raise UserError(
            f"{nodes.name}: there is no feature column; a graph that exceeds the memory needs one."
        )
    for batch in read_batches(nodes, names, 1):
        return feature_matrix(batch, names, nodes.name)[1]
    raise UserError(f"{nodes.name}: there are no rows, so the graph has no nodes; add some.")


def _read_labels(
    nodes: Path, columns: Columns
) -> tuple[np.ndarray, list[str], dict[str, np.ndarray], bool]:
    """Return labels, class names, masks, and whether the ids are the row numbers."""
    id_column = columns.id_column
    label_column = columns.label_column
    split_column = columns.split_column
    names = column_names(nodes)
    roles = [name for name in names if name in (id_column, label_column, split_column)]
    labels: list[pa.Array] = []
    codes: list[np.ndarray] = []
    n = 0
    numbered = True
    for batch in read_batches(nodes, roles or names[:1], _BATCH, columns.text):
        if id_column in roles and numbered:
            numbered = _are_row_numbers(batch[id_column], n)
        if label_column in roles:
            labels += batch[label_column].chunks
        if split_column in roles:
            codes.append(split_codes(batch[split_column], split_column, nodes.name, n))
        n += batch.num_rows
    y = np.full(n, UNLABELLED)
    class_names: list[str] = []
    if labels:
        where = f"{nodes.name}, column {label_column!r}"
        y, class_names = encode_labels(pa.chunked_array(labels), where)
    masks = split_masks(np.concatenate(codes)) if codes else {}
    masks = {key: mask & (y != UNLABELLED) for key, mask in masks.items()}
    return y, class_names, masks, numbered


def _are_row_numbers(ids: pa.ChunkedArray, first: int) -> bool:
    """Whether the ids of a batch are the numbers of its rows."""
    try:
        numbers = pc.cast(ids, pa.int64()).to_numpy()
    except (pa.ArrowException, ValueError):
        return False
    return np.array_equal(numbers, np.arange(first, first + len(ids)))


def _read_ids(nodes: Path, columns: Columns) -> NodeIds:
    chunks: list[pa.Array] = []
    for batch in read_batches(nodes, [columns.id_column], _BATCH, columns.text):
        chunks += batch[columns.id_column].chunks
    return NodeIds(pa.chunked_array(chunks), columns.id_column, nodes.name)


def _edge_batches(
    edges: Path, columns: Columns, size: int, ids: NodeIds | None
) -> Iterator[tuple[np.ndarray, ...]]:
    """Iterate over the edges as node numbers; without ``ids`` they are row numbers.

    Weights follow where the table has them.
    """
    names = {"source": columns.source_column, "target": columns.target_column}
    present = column_names(edges)
    for role, name in names.items():
        require(present, name, edges.name, role)
    row = 0
    text = () if ids is None else columns.text
    weights = [columns.weight_column] if columns.weight_column in present else []
    for batch in read_batches(edges, [*names.values(), *weights], size, text):
        ends = []
        for name in names.values():
            if ids is None:
                ends.append(_row_numbers(batch[name], row, name, edges.name))
            else:
                end = np.empty(batch.num_rows, dtype=np.int64)
                ids.find(batch[name], end, name, edges.name, row)
                ends.append(end)
        for name in weights:
            ends.append(numbers(batch[name], name, edges.name, "weight", first=row))
        yield tuple(ends)
        row += batch.num_rows


def _row_numbers(column: pa.ChunkedArray, row: int, name: str, file: str) -> np.ndarray:
    if column.null_count or not pa.types.is_integer(column.type):
        gaps = " with gaps" if column.null_count else ""
        raise UserError(
            f"{file}: column {name!r} after row {row} has type {column.type}{gaps}; the edges of a "
            "graph that exceeds the memory must be whole row numbers."
        )
    values: np.ndarray = column.to_numpy()
    return values
