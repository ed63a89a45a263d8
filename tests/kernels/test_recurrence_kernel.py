"""The GPU's kernels, run by Triton's interpreter, against the torch backend and dense products."""

import gc
import weakref

import pytest
import torch
from conftest import random_graph
from helpers import triton_on_cpu  # noqa: F401  before any kernel is defined

from nfgnn.kernels import recurrence as triton_backend
from nfgnn.kernels import term_filter as term_filter_kernel
from nfgnn.nn.gates import term_filter
from nfgnn.spectral import (
    BASES,
    CSR,
    recurrence_table,
    resolve_basis,
    scaled_laplacian,
    torch_backend,
)

N = 16


def graph(weighted: bool, self_loops: bool = False) -> torch.Tensor:
    edge_index = random_graph(N, 0.6, 0)
    weight = (edge_index.sum(0) % 3 + 1).double() if weighted else None
    return scaled_laplacian(edge_index, weight, N, self_loops, lambda_max=1.9)


@pytest.fixture(params=["one program a row", "rows share programs"])
def large(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat the same graph as a small and as a large one, both with rows beyond ``_LONG``."""
    monkeypatch.setattr(triton_backend, "_LONG", 3)
    monkeypatch.setattr(
        triton_backend, "LARGE", 10**9 if request.param == "one program a row" else 4
    )
    monkeypatch.setattr(triton_backend, "_GROUPS", triton_backend.TensorCache())


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    ("name", "weighted", "width", "dtype"),
    [
        *((name, False, 4, torch.float32) for name in BASES),
        *((name, True, 3, torch.float32) for name in BASES),
        ("chebyshev", False, 3, torch.float32),
        ("chebyshev", True, 4, torch.float32),
        ("jacobi", True, 3, torch.float64),  # the basis whose factors float32 does not hold
    ],
)
def test_recurrence_and_adjoint_equal_the_torch_backend(
    name: str, weighted: bool, width: int, dtype: torch.dtype
) -> None:
    operator, K = graph(weighted), 3
    table = recurrence_table(resolve_basis(name), K, operator.lambda_max)
    x, grad = torch.randn(N, width, dtype=dtype), torch.randn(K + 1, N, width, dtype=dtype)
    close = 1e-5 if dtype == torch.float32 else 1e-13
    for ours, theirs in (
        (
            triton_backend.terms(x, operator, table),
            torch_backend.terms(x.double(), operator, table),
        ),
        (
            triton_backend.adjoint(grad, operator, table),
            torch_backend.adjoint(grad.double(), operator, table),
        ),
    ):
        assert ours.dtype == dtype
        torch.testing.assert_close(
            ours.double(), theirs, rtol=close, atol=close * float(theirs.abs().max())
        )


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_with_values_and_with_a_batch_of_values(dtype: torch.dtype) -> None:
    dense = torch.rand(30, 20, dtype=dtype) * (torch.rand(30, 20) < 0.3)
    matrix = CSR.from_tensor(dense.to_sparse_csr())
    x = torch.randn(20, 5, dtype=dtype)
    torch.testing.assert_close(triton_backend.matmul(matrix, x), dense @ x)
    values, batch = (
        torch.rand(3, matrix.values.numel(), dtype=dtype),
        torch.randn(20, 3, 5, dtype=dtype),
    )
    ours = triton_backend.batched_matmul(matrix, values, batch)
    torch.testing.assert_close(ours, torch_backend.batched_matmul(matrix, values, batch))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("longest", [5, 40])
def test_wide_products_equal_dense_ones(longest: int, dtype: torch.dtype) -> None:
    """Rows share programs unless one of them is long; their number is no multiple of the blocks."""
    torch.manual_seed(0)
    dense = torch.rand(11, 50) * (torch.rand(11, 50) < 0.1)
    dense[3] = 0.0
    dense[7] = 0.0
    dense[7, :longest] = 1.0
    matrix = CSR.from_tensor(dense.to_sparse_csr())
    x = torch.randn(50, triton_backend._WIDE + 8).to(dtype)
    groups = triton_backend.RowGroups.of(matrix.indptr)
    shared = triton_backend._blocks(groups, False, x.shape[1], 128)[0] > 1
    assert shared is (groups.max_length <= triton_backend._WIDE_LENGTH)
    assert groups.max_length >= longest
    ours = triton_backend.matmul(matrix, x)
    assert ours.dtype == dtype
    close = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(ours.float(), dense @ x.float(), rtol=close, atol=close)


@pytest.mark.parametrize(
    ("orders", "n", "runs", "channels", "rank"),
    [(4, 37, 3, 5, 2), (3, 20, 1, 2, 1), (2, 100, 2, 7, 3)],
)
@pytest.mark.parametrize("beside", [0, 4])
def test_the_gated_sum_and_its_gradient(
    orders: int, n: int, runs: int, channels: int, rank: int, beside: int
) -> None:
    """Also of terms that are columns of a wider matrix."""
    terms = torch.randn(orders, n, beside + runs * channels)[..., beside:].unflatten(
        -1, (runs, channels)
    )
    grad = torch.randn(n, runs, channels)
    weight, gamma = torch.randn(runs, channels, rank), torch.randn(runs, orders, rank)
    torch.testing.assert_close(
        term_filter_kernel.forward(terms, weight, gamma),
        term_filter.forward(terms, weight, gamma),
        rtol=1e-4,
        atol=1e-5,
    )
    for ours, theirs in zip(
        term_filter_kernel.backward(grad, terms, weight, gamma),
        term_filter.backward(grad, terms, weight, gamma),
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_what_is_prepared_ends_with_the_graph() -> None:
    edge_index = random_graph(N, 0.2, 0)
    operator = scaled_laplacian(edge_index, num_nodes=N)
    table = recurrence_table(resolve_basis("chebyshev"), 2, 2.0)
    triton_backend.terms(torch.randn(N, 2), operator, table)
    indptr = weakref.ref(operator.indptr)
    del edge_index, operator
    gc.collect()
    assert indptr() is None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("entries", [1, 7, 10**6])
def test_a_matrix_is_reordered_in_blocks(
    weighted: bool, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triton_backend, "_BLOCK_ENTRIES", entries)
    n = 30
    dense = torch.rand(n, n) * (torch.rand(n, n) < 0.2)
    dense[4] = torch.arange(1.0, n + 1)  # a hub, longer than most blocks
    dense[9] = 0.0
    order = torch.randperm(n)
    matrix = dense.to_sparse_csr()
    indptr, indices, weight = triton_backend._reordered(
        matrix.crow_indices(),
        matrix.col_indices().int(),
        matrix.values() if weighted else None,
        order,
    )
    values = torch.ones(indices.numel()) if weight is None else weight
    expected = dense if weighted else (dense != 0).float()
    sparse = torch.sparse_csr_tensor(indptr, indices.long(), values, (n, n), check_invariants=False)
    found = sparse.to_dense()
    assert indices.dtype == torch.int32
    assert torch.equal(found, expected[order][:, order])
