"""Parts of graphs whose best cut is known, compared with random parts."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch import Tensor

from nfgnn.data import kept_edges, partition_graph
from nfgnn.errors import UserError


def shuffled(graph: nx.Graph, seed: int = 0) -> tuple[Tensor, np.ndarray]:
    """Return the edges, in both directions, under random numbers, and the number of every node."""
    number = np.random.default_rng(seed).permutation(graph.number_of_nodes())
    index = {node: i for i, node in enumerate(graph)}
    edges = number[[(index[a], index[b]) for a, b in graph.edges]].T
    return torch.from_numpy(np.concatenate([edges, edges[::-1]], 1)), number


def test_two_cliques_are_separated_at_their_only_edge() -> None:
    edge_index, number = shuffled(nx.barbell_graph(40, 0))
    part = partition_graph(edge_index, 80, 2)
    assert len({int(p) for p in part[number[:40]]}) == 1
    assert torch.bincount(part).tolist() == [40, 40]
    assert kept_edges(edge_index, part) == pytest.approx(1 - 1 / (2 * 780 + 1))


@pytest.mark.parametrize("blocks", [2, 10])
def test_planted_blocks_are_found(blocks: int) -> None:
    size = 100
    graph = nx.planted_partition_graph(blocks, size, 0.2, 0.01 / (blocks - 1), seed=1)
    edge_index, number = shuffled(graph)
    block = torch.empty(blocks * size, dtype=torch.long)
    block[number] = torch.arange(blocks).repeat_interleave(size)
    part = partition_graph(edge_index, blocks * size, blocks)
    assert kept_edges(edge_index, part) == kept_edges(edge_index, block)
    assert torch.bincount(part).tolist() == [size] * blocks


@pytest.mark.parametrize(("num_parts", "cut"), [(4, 2 * 60), (9, 4 * 60)])
def test_the_cut_of_a_grid_is_near_the_best_one(num_parts: int, cut: int) -> None:
    edge_index, _ = shuffled(nx.grid_2d_graph(60, 60))
    num_edges = edge_index.shape[1] // 2
    part = partition_graph(edge_index, 3600, num_parts)
    found = (1 - kept_edges(edge_index, part)) * num_edges
    assert cut <= found < 3.5 * cut
    random = torch.randint(num_parts, (3600,), generator=torch.Generator().manual_seed(0))
    assert found < 0.15 * (1 - kept_edges(edge_index, random)) * num_edges


@pytest.mark.parametrize("num_parts", [3, 17, 40])
def test_sizes_are_within_a_tenth_of_their_mean(num_parts: int) -> None:
    edge_index, _ = shuffled(nx.barabasi_albert_graph(1000, 3, seed=0))
    sizes = torch.bincount(partition_graph(edge_index, 1000, num_parts), minlength=num_parts)
    mean = 1000 / num_parts
    assert int(0.9 * mean) <= int(sizes.min())
    assert int(sizes.max()) <= int(1.1 * mean) + 1
    assert len(sizes) == num_parts


def test_directions_duplicates_and_self_loops_do_not_matter() -> None:
    edge_index, _ = shuffled(nx.connected_caveman_graph(6, 10))
    once = edge_index[:, : edge_index.shape[1] // 2]
    loops = torch.arange(60).repeat(2, 1)
    expected = kept_edges(once, partition_graph(edge_index, 60, 6))
    assert expected == 1 - 6 / once.shape[1]
    for variant in (once, torch.cat([edge_index, edge_index], 1), torch.cat([once, loops], 1)):
        assert kept_edges(once, partition_graph(variant, 60, 6)) == expected


def test_the_same_seed_gives_the_same_parts() -> None:
    edge_index, _ = shuffled(nx.barabasi_albert_graph(500, 2, seed=0))
    parts = [partition_graph(edge_index, 500, 5, seed) for seed in (0, 0, 1)]
    assert torch.equal(parts[0], parts[1])
    assert not torch.equal(parts[0], parts[2])


def test_limits() -> None:
    nothing = torch.empty(2, 0, dtype=torch.long)
    edge_index, _ = shuffled(nx.path_graph(12))
    assert torch.bincount(partition_graph(nothing, 10, 3)).tolist() == [4, 3, 3]
    assert kept_edges(nothing, torch.zeros(10)) == 1.0
    assert partition_graph(edge_index, 12, 1).tolist() == [0] * 12
    assert sorted(partition_graph(edge_index, 12, 12).tolist()) == list(range(12))
    for num_parts in (0, 13):
        with pytest.raises(UserError, match=f"of 12 nodes cannot be cut into {num_parts} parts"):
            partition_graph(edge_index, 12, num_parts)
