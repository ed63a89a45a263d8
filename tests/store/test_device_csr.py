"""Edges sorted in the memory of a device, against the operator of a graph in memory."""

import pytest
import torch
from torch_geometric.utils import to_undirected

from nfgnn.data import PowerLawGraph
from nfgnn.spectral import scaled_laplacian
from nfgnn.store import device_csr
from nfgnn.store.device_csr import csr_on_device

CPU = torch.device("cpu")


@pytest.mark.parametrize("entries", [1, 50, 10**6])
def test_equals_the_operator_in_memory(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_csr, "_READ_AT_A_TIME", 100)
    graph = PowerLawGraph(90, 700, num_classes=3)  # with repeated edges, self-loops and hubs
    edges = graph.edges(0, 700, CPU)
    edges[-1] = torch.tensor([5, 5])
    edges = edges[(edges != 7).all(1)]  # and a node without neighbours
    ours = csr_on_device(edges, 90, lambda_max=1.9, entries=entries)
    expected = scaled_laplacian(to_undirected(edges.T.long(), num_nodes=90), None, 90)
    assert torch.equal(ours.indptr.long(), expected.indptr.long())
    assert torch.equal(ours.indices.long(), expected.indices.long())
    assert torch.equal(ours.scale, expected.scale)
    assert ours.lambda_max == 1.9


def test_keys_of_the_largest_graphs_do_not_overflow() -> None:
    n = 2**31 - 1
    edges = torch.tensor([[n - 1, n - 2], [n - 1, 3]], dtype=torch.int32)
    keys = device_csr._sorted_keys(edges, 0, n, n)
    assert keys.tolist() == [
        3 * n + n - 1,
        (n - 2) * n + n - 1,
        (n - 1) * n + 3,
        (n - 1) * n + n - 2,
    ]
