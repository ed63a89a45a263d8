import pytest
import torch

from nfgnn.nn import MLP, Linear, dropout
from nfgnn.spectral import CSR


@pytest.fixture
def features() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(20, 50, generator=generator) * (torch.rand(20, 50, generator=generator) < 0.1)


def test_sparse_features_give_what_dense_ones_give(features: torch.Tensor) -> None:
    linear = Linear(50, 8)
    dense, sparse = linear(features), linear(features.to_sparse_csr())
    torch.testing.assert_close(sparse, dense)
    grads = []
    for out in (dense, sparse):
        linear.zero_grad()
        (out**2).sum().backward()
        grads.append([p.grad.clone() for p in linear.parameters()])
    torch.testing.assert_close(grads[0], grads[1])


def test_dropout_on_stored_values_equals_dropout_on_the_matrix_under_the_same_mask(
    features: torch.Tensor,
) -> None:
    torch.manual_seed(1)
    dropped = dropout(features.to_sparse_csr(), 0.5, training=True)
    assert isinstance(dropped, CSR)
    dense = dropped.tensor.to_dense()
    kept = dense != 0
    torch.testing.assert_close(dense[kept], 2 * features[kept])
    weight = torch.randn(50, 4, requires_grad=True)
    (dropped @ weight).sum().backward()
    torch.testing.assert_close(weight.grad, dense.T @ torch.ones(20, 4))


def test_dropout_keeps_the_expected_share(features: torch.Tensor) -> None:
    torch.manual_seed(1)
    ones = torch.ones(200, 200).to_sparse_csr()
    values = dropout(ones, 0.3, training=True).values
    share = float((values != 0).float().mean())
    assert abs(share - 0.7) < 5 * (0.3 * 0.7 / 40_000) ** 0.5
    assert dropout(features, 0.3, training=False) is features


@pytest.mark.parametrize("rate", [1 - 1e-9, 1.0])
def test_dropout_at_a_rate_of_one_drops_everything(rate: float) -> None:
    torch.manual_seed(1)
    x = torch.ones(1000, requires_grad=True)
    dropped = dropout(x, rate, training=True)
    assert float((dropped != 0).float().mean()) < 0.01
    dropped.sum().backward()
    assert torch.equal(x.grad != 0, dropped != 0)


def test_mlp_is_its_formula(features: torch.Tensor) -> None:
    mlp = MLP(50, 3, hidden_channels=8, num_layers=3).eval()
    a, b, c = mlp.lins
    expected = c(torch.relu(b(torch.relu(a(features)))))
    torch.testing.assert_close(mlp(features), expected)
    torch.testing.assert_close(mlp(features.to_sparse_csr()), expected)
