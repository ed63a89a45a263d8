"""The recurrence on disk gives the same bits as the torch backend."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.store_graphs import small_graph, write_graph
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.spectral import (
    BASES,
    recurrence_table,
    recurrence_terms,
    resolve_basis,
    scaled_laplacian,
)
from nfgnn.store.disk_backend import each_term
from nfgnn.store.disk_laplacian import DiskLaplacian

K = 5


def expected_terms(data: Data, basis: str, lambda_max: float = 2.0) -> Tensor:
    operator = scaled_laplacian(
        data.edge_index, data.get("edge_weight"), data.num_nodes, lambda_max=lambda_max
    )
    return recurrence_terms(data.x, operator, resolve_basis(basis), K)


def prepare(data: Data, folder: Path, entries: int = 60) -> tuple[Path, DiskLaplacian]:
    """Write the graph and the features, and return them as the arguments of ``each_term``."""
    write_graph(data, folder / "graph")
    np.save(folder / "x.npy", data.x.numpy())
    (folder / "scratch").mkdir()
    return folder / "x.npy", DiskLaplacian(folder / "graph", entries)


@pytest.mark.parametrize("basis", [*BASES, "jacobi(0.5, 2)"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("entries", "lambda_max"), [(1, 2.0), (60, 1.7), (10_000, 2.0)])
def test_terms_equal_those_of_the_torch_backend(
    basis: str, weighted: bool, entries: int, lambda_max: float, tmp_path: Path
) -> None:
    data = small_graph(weighted=weighted)
    expected = expected_terms(data, basis, lambda_max)
    x, operator = prepare(data, tmp_path, entries)
    table = recurrence_table(resolve_basis(basis), K, lambda_max)
    orders = []
    for k, term in each_term(x, operator, table, tmp_path / "scratch"):
        assert torch.equal(term, expected[k])
        orders.append(k)
    assert orders == list(range(K + 1))
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.parametrize("stop", range(1, K + 2))
def test_an_interrupted_recurrence_resumes_with_its_last_term(stop: int, tmp_path: Path) -> None:
    data = small_graph()
    expected = expected_terms(data, "chebyshev")
    x, operator = prepare(data, tmp_path)
    table = recurrence_table(resolve_basis("chebyshev"), K, 2.0)
    for _ in islice(each_term(x, operator, table, tmp_path / "scratch"), stop):
        pass
    assert len(list((tmp_path / "scratch").glob("state-*"))) <= 2
    orders = []
    for k, term in each_term(x, operator, table, tmp_path / "scratch"):
        assert torch.equal(term, expected[k])
        orders.append(k)
    assert orders == list(range(stop - 1, K + 1))
