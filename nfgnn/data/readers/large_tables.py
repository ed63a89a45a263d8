"""A large graph in two tables, nodes and links, read in batches of rows."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nfgnn.data.labels import MISSING, encode_labels
from nfgnn.data.large_graph import LargeGraph, files_mark
from nfgnn.data.readers.batches import column_names, count_rows, read_batches
from nfgnn.data.readers.folder import SPLITS, Columns
from nfgnn.data.readers.tables import find_table
from nfgnn.data.readers.values import feature_matrix
from nfgnn.errors import UserError

_BATCH = 2**16


def tables_in_blocks(folder: Path, columns: Columns) -> LargeGraph:
    """``nodes`` and ``edges`` (CSV or Parquet) of a folder. The ids must be the row numbers 0, 1, 2, …"""
    nodes, edges = find_table(folder, "nodes"), find_table(folder, "edges")
    present = column_names(nodes)
    roles = {columns.id_column, columns.label_column, columns.split_column}
    names = [name for name in present if name not in roles | set(columns.drop_columns)]
    if columns.weight_column in column_names(edges):
        raise UserError(f"{edges.name}: weights are not read from links that do not fit into memory; leave the column "
                        f"{columns.weight_column!r} out, or give more --memory.")  # fmt: skip
    y, class_names, masks, n = _few_columns(
        nodes, columns, [name for name in present if name in roles]
    )
    width = sum(1 for _ in _first(nodes, names))
    return LargeGraph(
        name=folder.resolve().name, source=str(folder.resolve()), fingerprint=files_mark(nodes, edges), num_nodes=n,
        num_features=width, num_links=count_rows(edges), y=y, class_names=class_names, masks=masks,
        links=lambda size: _links(edges, columns, size),
        features=lambda rows: (
            feature_matrix(batch, names, nodes.name)[0].numpy() for batch in read_batches(nodes, names, rows)
        ),
    )  # fmt: skip


def _first(nodes: Path, names: list[str]) -> list[str]:
    """The names of the feature columns, lists unfolded."""
    if not names:
        raise UserError(
            f"{nodes.name}: there is no feature column; a graph that does not fit into memory needs some."
        )
    for batch in read_batches(nodes, names, 1):
        return feature_matrix(batch, names, nodes.name)[1]
    raise UserError(f"{nodes.name}: there is no row, so the graph has no nodes.")


def _few_columns(
    nodes: Path, columns: Columns, present: list[str]
) -> tuple[np.ndarray, list[str], dict[str, np.ndarray], int]:
    """Labels, their names, masks and the number of nodes; the ids are checked on the way."""
    labels: list[pa.Array] = []
    parts: list[np.ndarray] = []
    types = {columns.label_column: pa.string(), columns.split_column: pa.string()}
    n = 0
    for batch in read_batches(nodes, present or column_names(nodes)[:1], _BATCH, types):
        if columns.id_column in present:
            _check_ids(batch[columns.id_column], n, columns.id_column, nodes.name)
        if columns.label_column in present:
            labels += batch[columns.label_column].chunks
        if columns.split_column in present:
            parts.append(
                _split_codes(batch[columns.split_column], n, columns.split_column, nodes.name)
            )
        n += batch.num_rows
    where = f"{nodes.name}, column {columns.label_column!r}"
    y, names = encode_labels(pa.chunked_array(labels), where) if labels else (np.full(n, -1), [])
    part = np.concatenate(parts) if parts else None
    keys = ("train_mask", "val_mask", "test_mask")
    masks = (
        {} if part is None else {key: (part == code) & (y >= 0) for code, key in enumerate(keys)}
    )
    return y, names, masks, n


def _check_ids(ids: pa.ChunkedArray, first: int, name: str, file: str) -> None:
    try:
        numbers = pc.cast(ids, pa.int64()).to_numpy()
        right = numbers == np.arange(first, first + len(numbers))
    except (pa.ArrowException, ValueError):
        right = np.zeros(1, dtype=bool)
    if not right.all():
        row = int(np.flatnonzero(~right)[0])
        raise UserError(
            f"{file}: row {first + row + 1}, column {name!r}: the id is {ids[row].as_py()!r}; in a graph that does not "
            "fit into memory the ids must be the row numbers 0, 1, 2, …: renumber the nodes, or give more --memory."
        )


def _split_codes(words: pa.ChunkedArray, first: int, name: str, file: str) -> np.ndarray:
    """0 train, 1 val, 2 test, -1 none."""
    coded = pc.dictionary_encode(
        pc.utf8_lower(pc.utf8_trim_whitespace(pc.cast(words, pa.string())))
    ).combine_chunks()
    order, none = {"train": 0, "val": 1, "test": 2}, {word.lower() for word in MISSING} | {None}
    table = []
    for word in coded.dictionary.to_pylist():
        if word not in none and word not in SPLITS:
            raise UserError(
                f"{file}: column {name!r} after row {first}: {word!r} is not train, val, test or empty."
            )
        table.append(-1 if word in none else order[SPLITS[word]])
    codes: np.ndarray = coded.indices.fill_null(len(table)).to_numpy(zero_copy_only=False)
    parts: np.ndarray = np.array([*table, -1], dtype=np.int8)[codes]
    return parts


def _links(edges: Path, columns: Columns, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    names = [columns.source_column, columns.target_column]
    missing = [name for name in names if name not in column_names(edges)]
    if missing:
        raise UserError(f"{edges.name}: there is no column {missing[0]!r}; rename it, or say --column source=NAME "
                        "and --column target=NAME.")  # fmt: skip
    row = 0
    for batch in read_batches(edges, names, size):
        yield tuple(_node_numbers(batch[name], row, name, edges.name) for name in names)  # type: ignore[misc]
        row += batch.num_rows


def _node_numbers(column: pa.ChunkedArray, row: int, name: str, file: str) -> np.ndarray:
    if column.null_count or not pa.types.is_integer(column.type):
        raise UserError(
            f"{file}: column {name!r} after row {row}: holds {column.type}{' with gaps' if column.null_count else ''}; "
            "links of a graph that does not fit into memory are whole row numbers."
        )
    numbers: np.ndarray = column.to_numpy()
    return numbers
