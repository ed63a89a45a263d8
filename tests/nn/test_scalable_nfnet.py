"""ScalableNFNet against its formula, and against ScalableNFGNN without its additions."""

import pytest
import torch
from conftest import random_graph
from torch import Tensor

from nfgnn.nn import ScalableNFGNN, dropout
from nfgnn.nn.models.scalable_nfnet import ScalableNFNet, consecutive_cosines
from nfgnn.spectral import RowParts, adjacency_sketch, parts_of_graph, scaled_laplacian

N, F, C, K = 30, 5, 3, 4


@pytest.fixture
def graph() -> tuple[Tensor, Tensor]:
    x = torch.randn(N, F, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return x, random_graph(N, 0.3, 0)


@pytest.mark.parametrize("batch_norm", [False, True])
def test_equals_the_formula(graph, batch_norm: bool) -> None:
    x, edge_index = graph
    torch.manual_seed(1)
    model = ScalableNFNet(F, C, 8, 3, sketch=6, batch_norm=batch_norm, K=K, rank=2, num_nodes=N)
    model = model.double().eval()
    laplacian = scaled_laplacian(edge_index, None, N)
    s = adjacency_sketch(laplacian.indptr, laplacian.indices, 6, torch.arange(N)).double()
    first, middle, last = model.mlp.lins
    norms = [torch.nn.Identity(), torch.nn.Identity()]
    if batch_norm:
        norms = [norm.eval() for norm in model.norms]
        norms[0].running_mean.fill_(0.3)
    h = torch.relu(norms[0](first(model.prop(x, edge_index)) + model.sketch_map(s * 6**0.5)))
    h = h + torch.relu(norms[1](middle(h)))
    torch.testing.assert_close(model(x, edge_index), last(h))


def test_further_parts_are_added_before_the_first_activation(graph) -> None:
    x, edge_index = graph
    torch.manual_seed(2)
    parts = RowParts(two_hop=7, degree=True, agreement=True)
    model = ScalableNFNet(F, C, 8, K=K, two_hop=7, degree=True, agreement=True, attention=2)
    model = model.double().eval()
    found = parts_of_graph(parts, x, scaled_laplacian(edge_index, None, N)).double()
    terms = model.rows(x, edge_index)[:, : (K + 1) * F].view(N, K + 1, F)
    cosines = [torch.cosine_similarity(terms[:, k], terms[:, k + 1]) for k in range(K)]
    statistics = torch.cat([found[:, -2:], torch.stack(cosines, 1)], 1)
    first, last = model.mlp.lins
    h = first(model.prop(x, edge_index)) + model.attention(terms)
    h = h + model.two_hop_map(found[:, :7] * 7**0.5) + model.statistics_map(statistics)
    torch.testing.assert_close(model(x, edge_index), last(torch.relu(h)))


def test_without_a_sketch_and_residual_layers_it_is_the_scalable_model(graph) -> None:
    x, edge_index = graph
    plain = ScalableNFGNN(F, C, 8, 2, K=K).double().eval()
    model = ScalableNFNet(F, C, 8, 2, K=K).double().eval()
    model.load_state_dict(plain.state_dict())
    torch.testing.assert_close(model(x, edge_index), plain(x, edge_index))
    torch.testing.assert_close(model.coefficients(x, edge_index), plain.coefficients(x, edge_index))


def test_dropout_of_the_sketch_is_its_own(graph) -> None:
    x, edge_index = graph
    model = ScalableNFNet(F, C, 8, sketch=6, dropout=0.0, sketch_dropout=0.4, K=K).double()
    rows = model.rows(x, edge_index)
    dropped = rows.clone()
    torch.manual_seed(3)
    dropped[:, -6:] = dropout(rows[:, -6:], 0.4, True)
    torch.manual_seed(3)
    found = model.train().forward_rows(rows)
    expected = model.eval().forward_rows(dropped)
    torch.testing.assert_close(found, expected)
    assert not torch.allclose(model.forward_rows(rows), expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_layers": 1}, "num_layers = 1 is not valid: pass a whole number of at least 2"),
        ({"sketch": -1}, "sketch = -1 is not valid"),
        ({"two_hop": -1}, "two_hop = -1 is not valid"),
        ({"gate": "agreement", "rank": 3}, "needs the graph"),
    ],
)
def test_invalid_settings_are_rejected(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ScalableNFNet(F, C, **settings)


@pytest.mark.parametrize("length", [0.0, 1e-25])
def test_cosines_of_terms_that_are_zero_are_zero(length: float) -> None:
    """As those of a node without features and neighbours. In float32, the squares underflow."""
    terms = torch.randn(4, K + 1, F)
    terms[1] = length
    terms.requires_grad_()
    cosines = consecutive_cosines(terms)
    expected = torch.cosine_similarity(terms[0, :-1], terms[0, 1:])
    torch.testing.assert_close(cosines[0], expected)
    assert not cosines[1].any()
    (gradient,) = torch.autograd.grad(cosines.sum(), terms)
    assert gradient.isfinite().all()
