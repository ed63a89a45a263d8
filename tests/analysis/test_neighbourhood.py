"""i-hop neighbourhoods against all shortest paths, h and S against their formulas."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.utils import homophily as pyg_homophily

from nfgnn.analysis import class_counts, label_entropy, local_homophily, nested_class_counts
from nfgnn.analysis.neighbourhood import closed_adjacency, row_blocks

Graph = tuple[Tensor, Tensor]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    n = draw(st.integers(2, 14))
    node = st.integers(0, n - 1)
    edges = draw(st.sets(st.tuples(node, node).filter(lambda e: e[0] < e[1]), max_size=24))
    both = [*edges, *((b, a) for a, b in edges)]
    y = draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n))
    return torch.tensor(both, dtype=torch.long).reshape(-1, 2).T, torch.tensor(y)


def distances(edge_index: Tensor, n: int) -> list[list[float]]:
    """Return all distances by the Floyd-Warshall algorithm."""
    d = [[0 if a == b else math.inf for b in range(n)] for a in range(n)]
    for a, b in edge_index.T.tolist():
        d[a][b] = 1
    for k in range(n):
        for a in range(n):
            for b in range(n):
                d[a][b] = min(d[a][b], d[a][k] + d[k][b])
    return d


@given(graphs(), st.integers(1, 4), st.booleans())
@settings(max_examples=60, deadline=None)
def test_against_all_distances(graph: Graph, hops: int, within: bool) -> None:
    edge_index, y = graph
    n, labels, d = len(y), y.tolist(), distances(edge_index, len(y))
    h, S = local_homophily(edge_index, y, hops, within), label_entropy(edge_index, y, hops, within)
    counts = class_counts(edge_index, y, hops, within)
    classes = max(1, max(labels) + 1)
    for v in range(n):
        around = [
            labels[u] for u in range(n) if (1 <= d[v][u] <= hops if within else d[v][u] == hops)
        ]
        around = [label for label in around if label >= 0]
        assert counts[v].tolist() == [around.count(c) for c in range(classes)]
        if not around:
            assert math.isnan(h[v])
            assert math.isnan(S[v])
            continue
        share = [around.count(c) / len(around) + 1e-10 for c in range(classes)]
        assert float(S[v]) == pytest.approx(-sum(p * math.log(p) for p in share), abs=1e-12)
        if labels[v] >= 0:
            assert float(h[v]) == around.count(labels[v]) / len(around)
        else:
            assert math.isnan(h[v])


@given(graphs())
@settings(max_examples=30, deadline=None)
def test_one_hop_equals_pyg(graph: Graph) -> None:
    edge_index, y = graph[0], graph[1].clamp(min=0)
    theirs = pyg_homophily(edge_index, y, batch=torch.arange(len(y)), method="node")
    assert torch.allclose(local_homophily(edge_index, y).nan_to_num(0.0).float(), theirs)


def test_blocks_do_not_change_the_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    one_way = torch.randint(0, 200, (2, 600), generator=generator)
    hub = torch.stack([torch.zeros(150, dtype=torch.long), torch.arange(1, 151)])
    edges = torch.cat([one_way, hub], 1)
    # Repeated edges and loops must not count twice.
    edge_index = torch.cat([edges, edges.flip(0)], 1)
    y = torch.randint(-1, 5, (200,), generator=generator)
    whole = nested_class_counts(edge_index, y, 3)
    rows: list[tuple[int, int]] = []
    monkeypatch.setattr(
        "nfgnn.analysis.neighbourhood.row_blocks", lambda m, h: row_blocks(m, h, entries=400)
    )
    cut = nested_class_counts(edge_index, y, 3, lambda *done: rows.append(done))
    assert len(rows) > 20
    assert rows[-1] == (200, 200)
    assert all(torch.equal(a, b) for a, b in zip(whole, cut))


def test_blocks_respect_their_budget() -> None:
    edges = torch.randint(0, 500, (2, 3000), generator=torch.Generator().manual_seed(1))
    closed = closed_adjacency(torch.cat([edges, edges.flip(0)], 1), 500)
    blocks = list(row_blocks(closed, 2, entries=2000))
    assert np.array_equal([b for a, b in blocks[:-1]], [a for a, b in blocks[1:]])
    assert (blocks[0][0], blocks[-1][1]) == (0, 500)
    for start, stop in blocks:
        assert stop == start + 1 or (closed[start:stop] @ closed).nnz <= 2000
