"""Validation fixes and reports, or refuses with a message that names the place."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from nfgnn.data import check_graph, load_dataset, mixed_graph
from nfgnn.errors import UserError


def graph(**changes: object) -> Data:
    parts: dict[str, object] = {
        "x": torch.eye(4),
        "edge_index": torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]),
        "y": torch.tensor([0, 0, 1, 1]),
    }
    return Data(**{key: value for key, value in (parts | changes).items() if value is not None})


def test_a_valid_graph_passes_unchanged() -> None:
    data = check_graph(graph(), name="good")
    assert torch.equal(data.edge_index, graph().edge_index)
    assert (data.name, data.metric, data.notes) == ("good", "auto", [])
    assert (data.num_nodes, data.num_features, data.num_classes) == (4, 4, 2)
    assert data.class_names == ["0", "1"]


def test_passing_twice_changes_nothing() -> None:
    once = check_graph(mixed_graph(300), name="m")
    twice = check_graph(once)
    assert twice.to_dict().keys() == once.to_dict().keys()
    for key, value in once.to_dict().items():
        assert (
            torch.equal(value, twice[key])
            if isinstance(value, torch.Tensor)
            else value == twice[key]
        )


FIXED = {
    "dropped 1 self-loop": {"edge_index": torch.tensor([[0, 1, 1], [1, 0, 1]])},
    "merged 1 duplicate edge": {"edge_index": torch.tensor([[0, 0, 1, 2, 3], [1, 1, 0, 3, 2]])},
    "read 3 edges as undirected": {"edge_index": torch.tensor([[0, 1, 2], [1, 2, 3]])},
    "added the reverse of 1 directed edge": {"edge_index": torch.tensor([[0, 1, 2], [1, 0, 3]])},
    "1 node has no edge": {"edge_index": torch.tensor([[0, 1], [1, 2]])},
    "1 node has no label": {"y": torch.tensor([0, 0, 1, -1])},
    "renumbered the labels 3, 70 as 0 … 1": {"y": torch.tensor([70, 70, 3, 3])},
    "no edges: every node is classified by its own features": {
        "edge_index": torch.zeros(2, 0, dtype=torch.long)
    },
    "no features: used a constant and log(1 + degree)": {"x": None},
    "dropped 2 edges with weight 0": {"edge_weight": torch.tensor([0.0, 0.0, 1, 1, 1, 1])},
    "removed 1 unlabelled node from train, val and test": {
        "y": torch.tensor([0, 0, 1, -1]),
        "train_mask": torch.tensor([1, 0, 1, 1], dtype=torch.bool),
    },
    "some split has no training node of class 1": {
        "train_mask": torch.tensor([1, 1, 0, 0], dtype=torch.bool)
    },
}


@pytest.mark.parametrize("note", FIXED)
def test_fixes_are_reported(note: str) -> None:
    assert note in check_graph(graph(**FIXED[note])).notes


REFUSED = {
    "no nodes": {"x": torch.zeros(0, 3), "y": None},
    "no `edge_index`": {"edge_index": None},
    "`edge_index` has shape": {"edge_index": torch.zeros(3, 2, dtype=torch.long)},
    "`edge_index` has type float": {"edge_index": torch.rand(2, 4)},
    "contains node 9": {"edge_index": torch.tensor([[0, 1], [1, 9]])},
    "contains node -1": {"edge_index": torch.tensor([[0, -1], [1, 0]])},
    "row 1, column 2": {
        "x": torch.eye(4).index_put((torch.tensor(1), torch.tensor(2)), torch.tensor(float("nan")))
    },
    "row 0, column 0": {"x": torch.full((4, 1), float("inf"))},
    "is inf": {"x": torch.full((4, 2), 1e300, dtype=torch.float64)},
    "features have shape": {"x": torch.zeros(4, 2, 2)},
    "complex": {"x": torch.zeros(4, 2, dtype=torch.complex64)},
    "5 labels for 4 nodes": {"y": torch.tensor([0, 1, 0, 1, 0])},
    "`y` has shape": {"y": torch.zeros(4, 3)},
    "not a class": {"y": torch.tensor([0.5, 1, 0, 1])},
    "no node has a label": {"y": None},
    "of one class": {"y": torch.zeros(4, dtype=torch.long)},
    "2 weights for 6 edges": {"edge_weight": torch.ones(2)},
    "weight of edge 1": {"edge_weight": torch.tensor([1, -2.0, 1, 1, 1, 1])},
    "is nan; weights must be positive": {"edge_weight": torch.full((6,), float("nan"))},
    "`train_mask` has shape": {"train_mask": torch.ones(3, dtype=torch.bool)},
    "must contain only true and false": {"train_mask": torch.tensor([0, 1, 2, 3])},
    "`class_names` must be a list": {"class_names": torch.tensor(1)},
    "two classes have the same name": {"class_names": ["a", "a"]},
    "differ in shape": {
        "train_mask": torch.zeros(4, dtype=torch.bool),
        "val_mask": torch.zeros(4, 2, dtype=torch.bool),
    },
    "node 2 is in more than one": {
        "train_mask": torch.tensor([1, 0, 1, 0], dtype=torch.bool),
        "test_mask": torch.tensor([0, 1, 1, 0], dtype=torch.bool),
    },
}


@pytest.mark.parametrize("message", REFUSED)
def test_errors_name_the_place(message: str) -> None:
    with pytest.raises(UserError) as caught:
        check_graph(graph(**REFUSED[message]), name="mine")
    assert message in str(caught.value)
    assert str(caught.value).startswith("mine: ")


def test_a_graph_without_labels_may_be_predicted_on() -> None:
    data = check_graph(graph(y=None), need_labels=False)
    assert data.y.tolist() == [-1] * 4
    assert data.num_classes == 0


def test_other_attributes_of_nodes_are_kept() -> None:
    data = check_graph(
        graph(year=torch.arange(4), edge_attr=torch.rand(6, 2), node_ids=np.array(list("abcd")))
    )
    assert data.year.tolist() == [0, 1, 2, 3]
    assert data.node_ids.tolist() == list("abcd")
    assert "edge_attr" not in data


def test_masks_without_values_are_refused() -> None:
    data = Data(
        x=torch.zeros(3, 1), edge_index=torch.zeros(2, 0, dtype=torch.long), y=torch.arange(3)
    )
    for name in ("train_mask", "val_mask", "test_mask"):
        data[name] = torch.zeros(3, 0, dtype=torch.bool)
    with pytest.raises(UserError, match="masks have no values"):
        load_dataset(data)
