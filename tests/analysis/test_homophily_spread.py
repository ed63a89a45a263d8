"""Spread of homophily against its definition and on graphs with known patterns."""

import math

import pytest
import torch
from conftest import random_graph
from helpers.small_graphs import two_way

from nfgnn.analysis import class_counts, homophily_spread, local_homophily
from nfgnn.data import mixed_graph


def test_mixed_patterns_exceed_chance() -> None:
    def spread(**options: object) -> dict[str, float]:
        data = mixed_graph(4000, seed=1, **options)  # type: ignore[arg-type]
        return homophily_spread(class_counts(data.edge_index, data.y), data.y, data.edge_index)

    chance, mixed = spread(homophily=(0.4, 0.4)), spread(homophily=(0.8, 0.1))
    assert abs(chance["correlation"]) < 3 * chance["correlation_error"] < 0.05
    assert chance["deviation"] == pytest.approx(chance["by_chance"], rel=0.05)
    # Two patterns of equal weight: correlation = variance of the probability / p (1 - p).
    assert mixed["correlation"] == pytest.approx(0.35**2 / (0.45 * 0.55), abs=0.03)
    assert min(mixed["above_chance"], mixed["below_chance"]) > 0.3


def test_definition() -> None:
    edge_index = random_graph(40, 0.2, 6)
    y = torch.randint(0, 2, (40,), generator=torch.Generator().manual_seed(2))
    found = homophily_spread(class_counts(edge_index, y), y, edge_index)
    row, col = edge_index
    agree = (y[row] == y[col]).double()
    p = torch.stack([agree[y[row] == c].mean() for c in range(2)])[y[row]]
    e, above, below = agree - p, 0.0, 0.0
    for v in range(40):
        edges = (row == v).nonzero().flatten().tolist()
        pairs = [float(e[a] * e[b]) for a in edges for b in edges if a != b]
        if pairs:
            above, below = (
                above + sum(pairs) / len(pairs),
                below + float(p[edges[0]] * (1 - p[edges[0]])),
            )
    assert found["correlation"] == pytest.approx(above / below)
    h = local_homophily(edge_index, y)
    assert found["above_half"] == pytest.approx(float((h[~h.isnan()] > 0.5).double().mean()))


def test_sides_of_an_unbalanced_graph_add_up_to_one() -> None:
    # A triangle of class 0 whose nodes have one more neighbour each, of class 0, 0 and 1.
    edges = two_way((0, 1), (1, 2), (2, 0), (0, 3), (1, 4), (2, 5))
    y = torch.tensor([0, 0, 0, 0, 0, 1])
    found = homophily_spread(class_counts(edges, y), y, edges)
    # 11 of 12 ends of edges are in class 0. Nodes 2 (h = 2/3) and 5 (h = 0) are below that.
    assert found["below_chance"] == pytest.approx(2 / 6)
    assert found["above_chance"] == pytest.approx(4 / 6)
    # Node 2 has a majority of its own class and still less of it than chance gives.
    assert found["above_half"] == pytest.approx(5 / 6)


def test_deviation_by_chance_of_a_complete_graph() -> None:
    # Every node of class 0 has 3 of 5 neighbours in its class, every node of class 1 has 1 of 5.
    edges = torch.combinations(torch.arange(6)).T
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    y = torch.tensor([0, 0, 0, 0, 1, 1])
    found = homophily_spread(class_counts(edges, y), y, edges)
    between = (4 * 0.6**2 + 2 * 0.2**2) / 6 - ((4 * 0.6 + 2 * 0.2) / 6) ** 2
    within = (4 * 0.6 * 0.4 + 2 * 0.2 * 0.8) / 6 / 5
    assert found["deviation"] == pytest.approx(between**0.5)
    assert found["by_chance"] == pytest.approx((between + within) ** 0.5)


def test_a_node_at_chance_is_not_below_it() -> None:
    edges = two_way((0, 1), (1, 2), (2, 3), (3, 0))
    y = torch.tensor([0, 0, 1, 1])
    found = homophily_spread(class_counts(edges, y), y, edges)  # h = chance = 1/2 for all
    assert (found["above_chance"], found["below_chance"], found["above_half"]) == (1, 0, 0)


def test_undefined_without_labels() -> None:
    y = torch.full((10,), -1)
    edge_index = random_graph(10, 0.5, 0)
    assert all(
        math.isnan(v) for v in homophily_spread(class_counts(edge_index, y), y, edge_index).values()
    )
