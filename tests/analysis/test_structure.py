"""Structure of random graphs against NetworkX."""

import networkx as nx
import pytest
import torch

from nfgnn.analysis import structure


@pytest.mark.parametrize("seed", range(4))
def test_equals_networkx(seed: int) -> None:
    n = 40
    graph = (
        nx.gnp_random_graph(n, 0.03, seed=seed)
        if seed % 2
        else nx.bipartite.random_graph(18, 22, 0.05, seed=seed)
    )
    one_way = torch.tensor(list(graph.edges)).T
    found = structure(torch.cat([one_way, one_way.flip(0)], 1), n)
    linked = [part for part in nx.connected_components(graph) if len(part) > 1]
    assert found["components"] == nx.number_connected_components(graph)
    assert found["largest_component"] == max(map(len, nx.connected_components(graph))) / n
    assert found["isolated"] == nx.number_of_isolates(graph)
    assert found["bipartite"] == all(nx.is_bipartite(graph.subgraph(part)) for part in linked)
