"""Homophily by hand, against PyG, and at its limits."""

import math

import pytest
import torch
from conftest import random_graph
from helpers.small_graphs import two_way
from torch_geometric.utils import homophily as pyg_homophily

from nfgnn.analysis import (
    accuracy_by_homophily,
    homophily,
    homophily_by_chance,
    label_entropy,
    label_informativeness,
    local_homophily,
)
from nfgnn.data import mixed_graph
from nfgnn.errors import UserError


def test_by_hand() -> None:
    # A path 0 - 1 - 2 - 3 of classes a a b b and a node 4 of class a without edges.
    edge_index, y = two_way((0, 1), (1, 2), (2, 3)), torch.tensor([0, 0, 1, 1, 0])
    local = local_homophily(edge_index, y)
    assert local[:4].tolist() == [1, 0.5, 0.5, 1]
    assert math.isnan(local[4])
    measures = homophily(edge_index, y)
    assert measures["node"] == pytest.approx(0.75)
    assert homophily(edge_index, y, isolated="zero")["node"] == pytest.approx(0.6)
    assert measures["edge"] == pytest.approx(2 / 3)
    assert measures["class_insensitive"] == pytest.approx((2 / 3 - 3 / 5) + (2 / 3 - 2 / 5))
    # Half of the ends of edges are in each class.
    assert homophily_by_chance(edge_index, y) == pytest.approx(1 / 2)
    assert measures["adjusted"] == pytest.approx((2 / 3 - 1 / 2) / (1 / 2))
    joint = -(2 * (1 / 3) * math.log(1 / 3) + 2 * (1 / 6) * math.log(1 / 6))
    assert label_informativeness(edge_index, y) == pytest.approx(2 - joint / math.log(2))


@pytest.mark.parametrize("seed", range(5))
def test_equals_pyg(seed: int) -> None:
    edge_index = random_graph(60, 0.1, seed)
    y = torch.randint(0, 4, (60,), generator=torch.Generator().manual_seed(seed))
    measures = homophily(edge_index, y, isolated="zero")
    for ours, theirs in (
        ("node", "node"),
        ("edge", "edge"),
        ("class_insensitive", "edge_insensitive"),
    ):
        assert measures[ours] == pytest.approx(
            float(pyg_homophily(edge_index, y, method=theirs)), abs=1e-6
        )


def test_unlabelled_nodes_and_their_edges_do_not_count() -> None:
    edges = two_way((0, 1), (1, 2), (2, 3), (3, 0))
    y = torch.tensor([0, 0, 1, -1])
    assert homophily(edges, y) == homophily(two_way((0, 1), (1, 2)), y[:3])
    assert label_informativeness(edges, y) == label_informativeness(two_way((0, 1), (1, 2)), y[:3])


def test_limits() -> None:
    bipartite, y = two_way((0, 1), (2, 3)), torch.tensor([0, 1, 0, 1])
    assert homophily(bipartite, y)["edge"] == 0
    assert homophily(bipartite, y)["adjusted"] == pytest.approx(-1)
    assert label_informativeness(bipartite, y) == pytest.approx(
        1
    )  # a neighbour determines the class
    perfect = homophily(two_way((0, 2), (1, 3)), y)
    assert perfect == pytest.approx({"node": 1, "edge": 1, "class_insensitive": 1, "adjusted": 1})


def test_random_edges_have_no_adjusted_homophily() -> None:
    data = mixed_graph(4000, shares=(0, 0, 1), degree=20)
    assert homophily(data.edge_index, data.y)["adjusted"] == pytest.approx(0, abs=0.01)
    assert label_informativeness(data.edge_index, data.y) == pytest.approx(0, abs=0.01)


def test_undefined_is_nan() -> None:
    nothing = torch.zeros(2, 0, dtype=torch.long)
    for y in (torch.tensor([0, 1]), torch.tensor([-1, -1])):
        assert all(math.isnan(value) for value in homophily(nothing, y).values())
        assert math.isnan(label_informativeness(nothing, y))


def test_unknown_convention_is_an_error() -> None:
    with pytest.raises(UserError, match="isolated"):
        homophily(two_way((0, 1)), torch.tensor([0, 1]), isolated="maybe")


def test_entropy_limits() -> None:
    star = torch.tensor([[0, 0, 0, 0, 1, 2, 3, 4], [1, 2, 3, 4, 0, 0, 0, 0]])
    uniform, one = torch.tensor([0, 0, 1, 2, 3]), torch.tensor([3, 1, 1, 1, 1])
    assert float(label_entropy(star, uniform)[0]) == pytest.approx(math.log(4))
    assert float(label_entropy(star, one)[0]) == pytest.approx(0, abs=1e-8)


def test_accuracy_by_interval_of_homophily() -> None:
    h = torch.tensor([0, 0.19, 3 / 5, 0.6, 1, 1, math.nan], dtype=torch.float64)
    correct = torch.tensor([True, False, True, True, True, False, True])
    result = accuracy_by_homophily(correct, h)
    assert result.nodes.tolist() == [2, 0, 0, 2, 2]
    assert result.accuracy[[0, 3, 4]].tolist() == [0.5, 1, 0.5]
    assert result.accuracy[1:3].isnan().all()


def test_homophily_of_edges_within_classes_is_exactly_one() -> None:
    # The shares of these numbers of edges sum to 1.0000000000000002.
    pairs = []
    y: list[int] = []
    for label, count in enumerate((83, 360, 26, 133, 109)):
        first = len(y)
        y += [label] * (count + 1)
        pairs += [(first + i, first + i + 1) for i in range(count)]
    measures = homophily(two_way(*pairs), torch.tensor(y))
    assert measures["edge"] == 1
    assert measures["adjusted"] == 1
