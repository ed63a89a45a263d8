"""The generated graph has the distribution of its docstring."""

import pytest
import torch
from torch_geometric.data import Data

from nfgnn.analysis.homophily import local_homophily
from nfgnn.data import load_dataset, mixed_graph
from nfgnn.data.fingerprints import content_hash
from nfgnn.errors import UserError

RECIPE = {"degree": 12, "signal": 0.55, "homophily": (0.85, 0.05)}


def test_local_homophily_follows_the_pattern() -> None:
    data = mixed_graph(6000, shares=(0.4, 0.3, 0.3), **RECIPE)
    local = local_homophily(data.edge_index, data.y)
    for pattern, expected in enumerate((0.85, 0.05, 0.25)):
        nodes = data.pattern == pattern
        assert nodes.float().mean() == pytest.approx((0.4, 0.3, 0.3)[pattern], abs=0.03)
        assert float(local[nodes].nanmean()) == pytest.approx(expected, abs=0.02)
    degree = torch.bincount(data.edge_index[0], minlength=6000).double().mean()
    assert float(degree) == pytest.approx(12, abs=0.3)


def test_edges_join_nodes_of_one_pattern() -> None:
    data = mixed_graph(500, shares=(0.5, 0.3, 0.2))
    assert torch.equal(data.pattern[data.edge_index[0]], data.pattern[data.edge_index[1]])


def crossing_share(data: Data) -> float:
    source, target = data.edge_index
    return float((data.pattern[source] != data.pattern[target]).double().mean())


@pytest.mark.parametrize("shares", [(0.5, 0.5, 0.0), (0.2, 0.3, 0.5)])
@pytest.mark.parametrize("crossing", [0.1, 0.5, 1.0])
def test_the_share_of_crossing_edges_is_the_one_asked_for(
    shares: tuple[float, ...], crossing: float
) -> None:
    data = mixed_graph(8000, shares=shares, crossing=crossing)
    assert crossing_share(data) == pytest.approx(crossing, abs=0.01)


def test_crossing_edges_follow_the_class_rule_of_their_source() -> None:
    """With every edge crossing two patterns, half are drawn from either of them."""
    data = mixed_graph(8000, homophily=(0.8, 0.2), crossing=1.0)
    source, target = data.edge_index
    same = (data.y[source] == data.y[target]).double().mean()
    assert float(same) == pytest.approx(0.5, abs=0.02)


def test_without_crossing_edges_the_graph_is_that_of_earlier_versions() -> None:
    data = mixed_graph(60, seed=5, crossing=0.0)
    assert content_hash(data) == "02ea4dd77f0d73ccafd0b4afce5924b5"


def test_features_are_class_means_plus_unit_noise() -> None:
    data = mixed_graph(8000, num_classes=2, num_features=16, signal=2.0)
    for c in range(2):
        x = data.x[data.y == c]
        assert float(x.mean(0).norm()) == pytest.approx(2.0 * 16**0.5 / 2, rel=0.05)
        assert float(x.std(0).mean()) == pytest.approx(1.0, abs=0.03)


def test_same_seed_same_graph() -> None:
    one, same, other = (
        mixed_graph(200, seed=3),
        load_dataset("Mixed", num_nodes=200, seed=3),
        mixed_graph(200, seed=4),
    )
    assert torch.equal(one.x, same.x)
    assert torch.equal(one.edge_index, same.edge_index)
    assert not torch.equal(one.x, other.x)


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_classes": 1},
        {"num_nodes": 2, "num_classes": 4},
        {"degree": 0},
        {"num_features": 0},
        {"shares": (0.5, 0.5)},
        {"shares": (0.9, 0.9, 0.0)},
        {"homophily": (2.0, 0.0)},
        {"crossing": 1.5},
        {"crossing": 0.1, "shares": (1, 0, 0)},
        {"no_such": 1},
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(UserError, match="mixed"):
        load_dataset("mixed", **arguments)
