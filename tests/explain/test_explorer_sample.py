"""Samples of nodes and their neighbours."""

import numpy as np
import pytest
from helpers.explorer_runs import synthetic_table

from nfgnn.explain.explorer.sample import sample_nodes


@pytest.mark.parametrize(("max_nodes", "max_neighbours"), [(1000, 32), (40, 32), (40, 2)])
def test_neighbours_of_a_sample(max_nodes: int, max_neighbours: int) -> None:
    table = synthetic_table(200)
    sample = sample_nodes(table.edge_index, 200, max_nodes, max_neighbours)
    assert sample.shown == min(max_nodes, 200)
    assert len(set(sample.nodes.tolist())) == len(sample.nodes)
    for i, node in enumerate(sample.nodes[: sample.shown]):
        around = table.edge_index[1][table.edge_index[0] == node]
        listed = sample.nodes[sample.neighbours[sample.starts[i] : sample.starts[i + 1]]]
        assert set(listed) <= set(around)
        assert len(set(listed)) == len(listed) == min(max_neighbours, len(around))


def test_sample_contains_the_given_nodes() -> None:
    table = synthetic_table(200)
    always = np.array([7, 199, 7, 0])
    shown = sample_nodes(table.edge_index, 200, 20, always=always).nodes[:20]
    assert {0, 7, 199} <= set(shown.tolist())
    assert len(set(shown.tolist())) == 20
    assert sample_nodes(table.edge_index, 200, 2, always=always).nodes[:2].tolist() == [7, 199]
