"""Cached values live as long as the tensors that they are computed from."""

import gc

import pytest
import torch
from torch import Tensor

from nfgnn import load_dataset
from nfgnn.nn import MLP
from nfgnn.nn import adjacency_features as adjacency
from nfgnn.nn.models.linkx import LINKX
from nfgnn.spectral import csr, laplacian, scaled_laplacian
from nfgnn.tensor_cache import TensorCache


def test_a_value_is_computed_once_for_the_same_tensor() -> None:
    cache = TensorCache()
    x = torch.ones(3)
    made = []

    def make() -> float:
        made.append(1)
        return float(x.sum())

    assert [cache.lookup((x,), "sum", make) for _ in range(3)] == [3.0, 3.0, 3.0]
    assert len(made) == 1
    cache.lookup((x.clone(),), "sum", make)
    cache.lookup((x,), "other options", make)
    assert len(made) == 3


@pytest.mark.parametrize("by_memory", [False, True])
def test_a_change_in_place_replaces_the_value(by_memory: bool) -> None:
    cache = TensorCache(by_memory)
    x = torch.ones(3)

    def total() -> float:
        return float(x.sum())

    for step in range(5):
        assert cache.lookup((x, None), None, total) == 3 + 3 * step
        x += 1
    assert len(cache) == 1


@pytest.mark.parametrize("by_memory", [False, True])
def test_a_deleted_tensor_drops_the_value(by_memory: bool) -> None:
    cache = TensorCache(by_memory)
    x = torch.ones(3)
    other = torch.ones(2)
    cache.lookup((x, other), None, lambda: 1)
    x += 1
    cache.lookup((x, other), None, lambda: 2)
    assert len(cache) == 1
    del x
    gc.collect()
    assert len(cache) == 0


@pytest.mark.parametrize("layout", ["to_sparse_csr", "to_sparse_coo"])
def test_sparse_features_are_released(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = TensorCache()
    monkeypatch.setattr(csr, "_CACHE", cache)
    x = getattr((torch.rand(20, 6) > 0.5).float(), layout)()
    edges = load_dataset("karate").edge_index[:, :0]
    MLP(6, 3)(x, edges)
    assert len(cache) == 1
    del x
    gc.collect()
    assert len(cache) == 0


@pytest.mark.parametrize("weighted", [False, True])
def test_a_graph_is_released_by_models_of_the_adjacency_matrix(
    weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = TensorCache()
    monkeypatch.setattr(adjacency, "_CACHE", cache)
    data = load_dataset("karate").clone()
    weight: Tensor | None = torch.full((data.edge_index.shape[1],), 2.0) if weighted else None
    model = LINKX(data.num_features, data.num_classes, data.num_nodes)
    model(data.x, data.edge_index, weight)
    assert len(cache) == 1
    del data, weight
    gc.collect()
    assert len(cache) == 0


def test_learned_edge_weights_leave_one_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = TensorCache()
    monkeypatch.setattr(laplacian, "_CACHE", cache)
    edges = load_dataset("karate").edge_index.clone()
    weight = torch.ones(edges.shape[1], requires_grad=True)
    for step in range(3):
        with torch.no_grad():
            weight += 1
            degree = scaled_laplacian(edges, weight).degree
        assert degree.sum() == (2 + step) * edges.shape[1]
    assert len(cache) == 1
