"""Graphs from Python objects."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from torch_geometric.data import Data

from nfgnn.data import load_dataset, mixed_graph
from nfgnn.errors import UserError


def test_pyg_data() -> None:
    data = Data(
        x=torch.rand(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([0, 1, 1])
    )
    loaded = load_dataset(data)
    assert loaded.edge_index.size(1) == 4
    assert data.edge_index.size(1) == 2  # the user's own is left alone


def test_networkx_with_attributes() -> None:
    graph = nx.Graph(name="Friends")
    graph.add_node("ann", label="r", age=30, score=0.5)
    graph.add_node(("tuple", 1), label="d", age=40, score=1.5)
    graph.add_node(7, age=50, score=2.5)
    graph.add_edge("ann", ("tuple", 1), weight=2.0)
    graph.add_edge(7, "ann")
    data = load_dataset(graph)
    assert data.name == "Friends"
    assert data.node_ids == ["ann", ("tuple", 1), 7]
    assert data.class_names == ["d", "r"]
    assert data.y.tolist() == [1, 0, -1]
    assert data.feature_names == ["age", "score"]
    assert data.edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    assert data.edge_weight.tolist() == [2, 1, 2, 1]


def test_an_id_of_networkx_nodes_does_not_rewire_the_graph() -> None:
    graph = nx.Graph()
    for name, number in (("a", 2), ("b", 0), ("c", 1)):
        graph.add_node(name, id=number, label="x" if number else "y", value=float(number))
    graph.add_edge("a", "b")
    data = load_dataset(graph)
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert data.feature_names == ["value"]


def test_networkx_with_vectors_and_given_labels() -> None:
    graph = nx.DiGraph([(0, 1), (1, 2)])
    nx.set_node_attributes(graph, {i: np.array([i, 1.0]) for i in range(3)}, "x")
    data = load_dataset(graph, y=["a", "b", "a"])
    assert data.x.tolist() == [[0, 1], [1, 1], [2, 1]]
    assert data.class_names == ["a", "b"]


def test_networkx_karate_needs_other_features() -> None:
    graph = nx.karate_club_graph()
    data = load_dataset(graph, label_column="club", x=np.eye(34))
    assert data.edge_index.size(1) == 156
    assert data.class_names == ["Mr. Hi", "Officer"]
    assert "edge_weight" in data


def test_scipy_with_arrays() -> None:
    adjacency = sparse.csr_matrix(np.array([[0, 1, 0], [0, 0, 2.0], [0, 0, 0]]))
    data = load_dataset(adjacency, x=sparse.eye(3), y=np.array([3, 5, 3]))
    assert data.edge_weight.tolist() == [1, 1, 2, 2]
    assert data.class_names == ["3", "5"]
    assert torch.equal(data.x, torch.eye(3))
    assert "edge_weight" not in load_dataset(
        adjacency.astype(bool), x=np.eye(3), y=torch.tensor([0, 1, 1])
    )


def test_pandas_frames() -> None:
    nodes = pd.DataFrame({"label": ["a", None, "b"], "f": [1, 2, 3]}, index=["u", "v", "w"])
    edges = pd.DataFrame({"source": ["u", "v"], "target": ["v", "w"]})
    data = load_dataset(nodes=nodes, edges=edges)
    assert data.node_ids.tolist() == ["u", "v", "w"]
    assert data.y.tolist() == [0, -1, 1]
    assert data.x.tolist() == [[1], [2], [3]]


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (42, {}, "a int is not a graph"),
        ([1, 2], {}, "a list is not a graph"),
        (sparse.eye(3).tocsr()[:2], {}, "must be square"),
        (sparse.eye(3), {"y": [0, 1]}, "2 labels for 3 nodes"),
        (
            sparse.eye(3),
            {"x": np.eye(4), "y": [0, 1, 1]},
            "features for 4 nodes, but the graph has 3 nodes",
        ),
        (mixed_graph(20), {"no_such": 1}, "no option 'no_such'"),
        ("karate", {"seed": 1}, "karate has no option 'seed'"),
        (None, {"nodes": pd.DataFrame({"id": [1]})}, "both data frames are required"),
    ],
)
def test_what_is_no_graph_is_refused(
    source: object, options: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        load_dataset(source, **options)
