"""Features of any form become float32, dense or CSR."""

import numpy as np
import pytest
import torch
from scipy import sparse
from torch_geometric.data import Data

from nfgnn.data import check_graph
from nfgnn.data.features import SPARSE_SIZE, check_features, sparse_if_faster
from nfgnn.errors import UserError


def test_features_are_sparse_when_mostly_zeros() -> None:
    n, f = 1024, SPARSE_SIZE // 1024
    x = torch.zeros(n, f)
    x[:, 0] = 3.0
    y, edge_index = torch.arange(n) % 2, torch.tensor([[0, 1], [1, 0]])
    thin = check_graph(Data(x=x, y=y, edge_index=edge_index))
    assert thin.x.layout == torch.sparse_csr
    assert torch.equal(thin.x.to_dense(), x)
    assert (thin.num_nodes, thin.num_features) == (n, f)
    assert check_graph(Data(x=x + 1, y=y, edge_index=edge_index)).x.layout == torch.strided
    assert check_graph(Data(x=x[:, :2], y=y, edge_index=edge_index)).x.layout == torch.strided
    assert (
        check_graph(Data(x=x.to_sparse_coo(), y=y, edge_index=edge_index)).x.layout
        == torch.sparse_csr
    )


@pytest.mark.parametrize("kind", [torch.int8, torch.float64, torch.float16, torch.bool])
def test_features_of_any_number_type(kind: torch.dtype) -> None:
    x = check_features(torch.eye(4, dtype=kind), "x")
    assert x.dtype == torch.float32
    assert torch.equal(x, torch.eye(4))


def test_a_bad_value_in_sparse_features_is_found() -> None:
    x = torch.eye(600)
    x[5, 5] = float("nan")
    data = Data(x=x.to_sparse_csr(), y=torch.arange(600) % 2, edge_index=torch.tensor([[0], [1]]))
    with pytest.raises(UserError, match="row 5, column 5"):
        check_graph(data)


def test_unsigned_features_beyond_int64_stay_positive() -> None:
    x = np.array([[2**64 - 1], [1]], dtype=np.uint64)
    for form in (x, torch.from_numpy(x), sparse.csr_array(x)):
        assert check_features(form, "here").to_dense().tolist() == [[2.0**64], [1.0]]


@pytest.mark.parametrize(("density", "layout"), [(0.15, torch.sparse_csr), (0.3, torch.strided)])
def test_a_cpu_trains_with_sparse_features_up_to_a_higher_density(
    density: float, layout: torch.layout
) -> None:
    x = torch.where(torch.rand(1024, 512) < density, torch.randn(1024, 512), 0)
    chosen = sparse_if_faster(x)
    assert chosen.layout == layout
    assert torch.equal(chosen.to_dense(), x)
