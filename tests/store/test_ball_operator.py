"""The estimate of edges that were not read."""

import numpy as np
import pytest
import torch
from helpers.new_nodes import GraphWithNewNodes

from nfgnn.spectral import resolve_basis
from nfgnn.store import NewNodes, StoredGraph
from nfgnn.store.ball_operator import BallOperator
from nfgnn.store.extended_graph import ExtendedGraph
from nfgnn.store.graph_ball import GraphBall
from nfgnn.store.indicator_walks import indicator_walks

NODES = 3000


def power_law_graph(weighted: bool = False, self_loops: bool = False) -> StoredGraph:
    rng = np.random.default_rng(0)
    source = rng.integers(0, NODES, 5 * NODES)
    ends = np.stack([source, (NODES * rng.random(5 * NODES) ** 3).astype(np.int64)])
    ends = ends[:, ends[0] != ends[1]]
    both = torch.unique(torch.from_numpy(np.concatenate([ends, ends[::-1]], 1)), dim=1)
    weight = (0.5 + both.sum(0) % 7).float() if weighted else None
    new = NewNodes(torch.zeros(1, 1), torch.tensor([[0], [NODES]]))
    chebyshev = resolve_basis("chebyshev")
    x = torch.zeros(NODES, 1)
    case = GraphWithNewNodes(x, both, weight, new, chebyshev, 1, self_loops)
    return case.stored_graph()


def with_new_node(graph: StoredGraph, neighbours: list[int]) -> ExtendedGraph:
    ends = torch.tensor([neighbours, [NODES] * len(neighbours)])
    return ExtendedGraph(graph, NewNodes(torch.zeros(1, 1), ends))


def small_ball(graph: StoredGraph) -> GraphBall:
    """Read the rows of the neighbours of a new node and of some nodes around them."""
    with GraphBall(with_new_node(graph, [50, 2000, 2900])) as ball:
        ball.read(np.ones(ball.size), 0.0, grow=True)
        sizes = (np.arange(ball.size) % 2).astype(float)
        ball.read(sizes, 0.0, grow=True)
    return ball


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("self_loops", [False, True])
def test_the_operator_is_symmetric_with_a_norm_of_one(weighted: bool, self_loops: bool) -> None:
    ball = small_ball(power_law_graph(weighted, self_loops))
    assert not ball.is_complete.all()
    operator = BallOperator(ball, estimate=True)
    matrix = operator.apply(np.eye(operator.size))
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    values = np.linalg.eigvalsh(matrix)
    assert np.abs(values).max() < 1 + 1e-6
    if not self_loops:  # loops of nodes that were not read are left out
        assert values.max() > 1 - 1e-6


def test_the_squares_of_unknown_edges_are_exact() -> None:
    """The diagonal of the squared operator is that of the whole graph, up to random edges."""
    graph = power_law_graph()
    ball = small_ball(graph)
    operator = BallOperator(ball, estimate=True)
    leaves = np.zeros((operator.size, ball.size))
    leaves[: ball.size] = np.eye(ball.size)
    twice = operator.apply(operator.apply(leaves))
    entries = graph.neighbours(ball.nodes[1:])
    scale = ball.graph.scale(entries.target)
    expected = np.bincount(entries.row, np.square(scale)) * np.square(ball.scale[1:])
    found = np.diag(twice)[1:].copy()
    found[:3] -= np.square(ball.added.toarray()[1:4, 0])
    unread = ~ball.is_read[1:]
    np.testing.assert_allclose(found[~unread], expected[~unread], rtol=1e-6)
    assert np.median(np.abs(found - expected)[unread]) < 0.02 * np.median(expected)


def test_the_estimate_reduces_the_error() -> None:
    graph = power_law_graph()
    K = 8
    errors: dict[bool, list[float]] = {False: [], True: []}
    rng = np.random.default_rng(1)
    for _ in range(5):
        extended = with_new_node(graph, sorted(rng.choice(NODES, 4, replace=False).tolist()))
        exact, _ = indicator_walks(extended, K, tolerance=0.0)
        for estimate, found in errors.items():
            with pytest.MonkeyPatch.context() as patch:
                if not estimate:
                    patch.setattr(
                        "nfgnn.store.indicator_walks.BallOperator",
                        lambda ball, estimate: BallOperator(ball, estimate=False),
                    )
                values, _ = indicator_walks(extended, K, tolerance=1e-6)
            found.append(float(np.abs(values - exact).max()))
    assert max(errors[True]) < 0.5 * max(errors[False])


def test_cycles_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Around a node of a tree there are none, and around one of a clique almost only those."""
    tree = torch.tensor([list(range(1, 40)), [(i - 1) // 3 for i in range(1, 40)]])
    clique = torch.combinations(torch.arange(40)).T
    shares = []
    for ends in (tree, clique):
        new = NewNodes(torch.zeros(1, 1), torch.tensor([[0], [40]]))
        both = torch.cat([ends, ends.flip(0)], 1)
        chebyshev = resolve_basis("chebyshev")
        case = GraphWithNewNodes(torch.zeros(40, 1), both, None, new, chebyshev, 1)
        with GraphBall(ExtendedGraph(case.stored_graph(), new)) as ball:
            assert ball.cycle_share == 1.0  # nothing is known yet
            monkeypatch.setattr("nfgnn.store.graph_ball._PRIOR_CYCLES", 0)
            for _ in range(3):
                ball.read(np.ones(ball.size), 0.0, grow=True)
            shares.append(ball.cycle_share)
        monkeypatch.undo()
    assert shares[0] == 0.0
    assert shares[1] > 0.9
