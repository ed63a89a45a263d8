import torch
from conftest import random_graph

from nfgnn.spectral import CSR, scaled_laplacian


def matrix() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    dense = torch.randn(7, 5, generator=generator, dtype=torch.float64)
    return dense * (torch.rand(7, 5, generator=generator) < 0.4)


def test_products_equal_dense_ones_with_their_gradient() -> None:
    dense = matrix()
    sparse = CSR.from_tensor(dense.to_sparse_csr())
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(sparse @ x, dense @ x)
    torch.testing.assert_close(sparse.transpose @ torch.eye(7, dtype=torch.float64), dense.T)
    assert torch.autograd.gradcheck(lambda x: sparse @ x, (x,))


def test_other_values_under_the_same_pattern() -> None:
    dense = matrix()
    sparse = CSR.from_tensor(dense.to_sparse_csr())
    doubled = sparse.with_values(sparse.values * 2)
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    (doubled @ x).sum().backward()
    torch.testing.assert_close(x.grad, (2 * dense).T @ torch.ones(7, 3, dtype=torch.float64))


def test_a_batch_is_one_product() -> None:
    dense = matrix()
    sparse = CSR.from_tensor(dense.to_sparse_csr())
    batch = torch.randn(4, 5, 3, dtype=torch.float64)
    torch.testing.assert_close(torch.vmap(lambda x: sparse @ x)(batch), dense @ batch)
    gradients = torch.vmap(torch.func.grad(lambda x: ((sparse @ x) ** 2).sum()))(batch)
    torch.testing.assert_close(gradients, 2 * dense.T @ (dense @ batch))


def test_indices_are_32_bit_and_the_object_is_kept() -> None:
    tensor = matrix().to_sparse_csr()
    sparse = CSR.from_tensor(tensor)
    assert sparse.indices.dtype == torch.int32
    assert CSR.from_tensor(tensor) is sparse


def test_a_symmetric_matrix_is_its_own_transpose() -> None:
    """The transpose has the same arrays, and the gradient equals that of the dense matrix."""
    edge_index = random_graph(30, 0.2, 1)
    matrix = scaled_laplacian(edge_index, (edge_index.sum(0) % 3 + 1).double(), 30).adjacency(
        torch.float64
    )
    assert matrix.transpose is matrix
    made, _ = matrix._transposed()
    for name in ("indptr", "indices", "values"):
        assert torch.equal(getattr(made, name), getattr(matrix, name))
    x = torch.randn(30, 4, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(30, 4, dtype=torch.float64)
    (gradient,) = torch.autograd.grad(((matrix @ x) * weight).sum(), x)
    torch.testing.assert_close(gradient, matrix.tensor.to_dense().T @ weight)
