"""Read nodes that are added to an existing graph, with their edges to it and to each other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
from nfgnn.data.names import check_feature_names, names_of, repeated_names
from nfgnn.data.readers.columns import Columns, feature_matrix, numbers, optional, require
from nfgnn.data.readers.feature_columns import TableEncoding, encode_table
from nfgnn.data.readers.graph_tables import find_edges
from nfgnn.data.readers.node_ids import NodeIds, comparable, ids_as_array
from nfgnn.data.readers.tables import find_table, read_table
from nfgnn.data.remote_graph import local_path
from nfgnn.errors import UserError


@dataclass(frozen=True)
class ExistingNodes:
    """What is known of the nodes of a graph that new nodes are added to.

    Args:
        num_nodes: number of nodes.
        num_features: number of features.
        find: returns the numbers of the nodes with these ids, given as text, and -1 for others.
        feature_names: names of the features, if the graph has some.
        feature_encoding: how columns of tables become features, if they are not plain numbers.
    """

    num_nodes: int
    num_features: int
    find: Callable[[Sequence[str]], np.ndarray]
    feature_names: list[str] | None = None
    feature_encoding: TableEncoding | None = None

    @classmethod
    def of_graph(cls, graph: Data) -> "ExistingNodes":
        """Return the nodes of a graph in memory."""
        ids = graph.get("node_ids")
        if ids is None:
            ids = np.arange(graph.num_nodes)
        # Ids are compared as text, because one source may have numbers and the other text.
        texts = pc.cast(ids_as_array(ids), pa.string())

        def find(wanted: Sequence[str]) -> np.ndarray:
            places = pc.index_in(pa.array(wanted, pa.string()), value_set=texts).fill_null(-1)
            found: np.ndarray = places.to_numpy(zero_copy_only=False)
            return found

        return cls(
            graph.num_nodes,
            graph.num_features,
            find,
            names_of(graph, "feature_names"),
            graph.get("feature_encoding"),
        )


def load_new_nodes(folder: str | Path, graph: Data | ExistingNodes, **options: Any) -> Data:
    """Read new nodes and their edges.

    Args:
        folder: the folder of ``nodes.csv`` and ``edges.csv`` (or ``.parquet``), or its URL. Nodes
            have an ``id`` and the features of the graph; labels and splits are ignored.
        graph: the existing graph, or what is known of its nodes.
        **options: names of columns, as for :func:`nfgnn.data.load_dataset`.

    Returns:
        ``x`` in the order of the graph's features; ``edge_index`` with every edge once, in which
        numbers from ``graph.num_nodes`` on are the new nodes, in their order; ``edge_weight`` if
        the edges have weights; ``node_ids``; ``feature_names`` if the features of the graph have
        names; ``notes`` about edges that were dropped.
    """
    columns = Columns(**options)
    place = local_path(folder)
    nodes_file = find_table(place, "nodes")
    edges_file = find_table(place, "edges")
    if isinstance(graph, Data):
        graph = ExistingNodes.of_graph(graph)
    known = () if graph.feature_encoding is None else graph.feature_encoding.text_columns
    nodes = read_table(nodes_file, (*columns.text, *columns.category_columns, *known))
    edges = read_table(edges_file, columns.text)
    require(nodes.column_names, columns.id_column, nodes_file.name, "id")
    new_ids = pc.cast(nodes[columns.id_column].combine_chunks(), pa.string())
    known_ids, known = _mentioned_nodes(edges, columns, graph, edges_file.name)
    _refuse_existing(graph, new_ids, columns.id_column, nodes_file.name)
    ids = NodeIds(
        pa.chunked_array([known_ids, new_ids]),
        columns.id_column,
        f"{nodes_file.name} or the known graph",
    )
    ends = find_edges(edges, ids, columns, edges_file.name)
    weight = optional(edges, columns.weight_column, "weight", edges_file.name)
    if weight is not None:
        weight = numbers(weight, columns.weight_column, edges_file.name, "weight")
        weight = check_weights(weight, edges.num_rows, edges_file.name)
    edge_index, edge_weight, notes = undirected(ends[0], ends[1], len(ids.ids), weight)
    once = edge_index[0] < edge_index[1]
    numbers_of_ids = np.append(known, graph.num_nodes + np.arange(nodes.num_rows))
    x, feature_notes = new_features(nodes, columns, graph, nodes_file.name)
    new = Data(x=x, edge_index=torch.from_numpy(numbers_of_ids[edge_index[:, once]]))
    if edge_weight is not None:
        new.edge_weight = torch.from_numpy(edge_weight[once])
    # That an edge is listed once or twice does not matter here.
    dropped = [note for note in notes if note.startswith("dropped")]
    new.notes = [*feature_notes, *dropped]
    if graph.feature_names:
        new.feature_names = list(graph.feature_names)
    new.node_ids = ids.ids.slice(len(known)).to_numpy(zero_copy_only=False)
    return new


def _mentioned_nodes(
    edges: pa.Table, columns: Columns, graph: ExistingNodes, file: str
) -> tuple[pa.Array, np.ndarray]:
    """Return the ids and the numbers of the existing nodes that have an edge here, in order."""
    texts = []
    for name in (columns.source_column, columns.target_column):
        if name in edges.column_names:
            ends = comparable(edges[name].combine_chunks(), name, file)
            texts.append(pc.cast(ends, pa.string()))
    mentioned = pc.unique(pa.chunked_array(texts, pa.string()))
    found = graph.find(mentioned.to_pylist())
    known = np.flatnonzero(found >= 0)
    known = known[np.argsort(found[known])]
    return mentioned.take(pa.array(known)), found[known].astype(np.int64)


def _refuse_existing(graph: ExistingNodes, new: pa.Array, name: str, file: str) -> None:
    texts = [text or "" for text in new.to_pylist()]  # a missing id is reported later
    existing = np.flatnonzero(graph.find(texts) >= 0)
    if len(existing):
        row = int(existing[0])
        raise UserError(
            f"{file}: row {row + 1}, column {name!r}: {texts[row]!r} is already a node of "
            "the graph; new nodes need new ids"
        )


def new_features(
    nodes: pa.Table, columns: Columns, graph: ExistingNodes, file: str
) -> tuple[Tensor, list[str]]:
    """Return the features in the order of the graph's, and notes about their encoding."""
    check_feature_names(graph.feature_names, graph.num_features, "the graph")
    repeated = repeated_names(graph.feature_names or [])
    if repeated:
        raise UserError(
            f"several features of the graph have the name {repeated[0]!r}, so the columns of "
            f"{file} cannot be matched with them: give every feature a name of its own"
        )
    names = columns.features(nodes.column_names)
    notes: list[str] = []
    encoding = graph.feature_encoding
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
    wanted = graph.feature_names or found
    missing = [name for name in wanted if name not in found]
    if missing or len(wanted) != graph.num_features:
        listed = f"; missing: {', '.join(missing[:5])}" if missing else ""
        raise UserError(
            f"{file}: the graph has {graph.num_features} features, "
            f"the new nodes have {len(found)}{listed}; use the columns of the graph"
        )
    return x[:, [found.index(name) for name in wanted]], notes


def features_of_objects(
    objects: Sequence[Mapping[str, Any]], graph: ExistingNodes, where: str
) -> Tensor:
    """Return the features of new nodes that are given by the names of columns.

    Args:
        objects: for every node, the values of its columns as in a table of nodes.
        graph: what is known of the graph.
        where: the place that error messages name.
    """
    try:
        table = pa.Table.from_pylist([dict(values) for values in objects])
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise UserError(
            f"{where}: the values of a column do not have the same type ({error}); use numbers or "
            "text for all nodes"
        ) from None
    return new_features(table, Columns(), graph, where)[0]
