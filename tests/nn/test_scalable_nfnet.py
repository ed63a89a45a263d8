"""ScalableNFNet against its formula, and against ScalableNFGNN without its additions."""

import pytest
import torch
from conftest import random_graph
from torch import Tensor

from nfgnn.nn import ScalableNFGNN
from nfgnn.nn.models.scalable_nfnet import ScalableNFNet
from nfgnn.spectral import adjacency_sketch, scaled_laplacian

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


def test_without_a_sketch_and_residual_layers_it_is_the_scalable_model(graph) -> None:
    x, edge_index = graph
    plain = ScalableNFGNN(F, C, 8, 2, K=K).double().eval()
    model = ScalableNFNet(F, C, 8, 2, K=K).double().eval()
    model.load_state_dict(plain.state_dict())
    torch.testing.assert_close(model(x, edge_index), plain(x, edge_index))
    torch.testing.assert_close(model.coefficients(x, edge_index), plain.coefficients(x, edge_index))


def test_dropout_of_the_sketch_is_its_own(graph) -> None:
    x, edge_index = graph
    model = ScalableNFNet(F, C, 8, sketch=6, dropout=0.0, sketch_dropout=1.0, K=K).double()
    rows = model.rows(x, edge_index)
    without = rows.clone()
    without[:, -6:] = 0.0
    torch.testing.assert_close(model.train().forward_rows(rows), model.forward_rows(without))
    assert not torch.allclose(model.eval().forward_rows(rows), model.forward_rows(without))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_layers": 1}, "num_layers must be at least 2"),
        ({"sketch": -1}, "sketch must be at least 0"),
        ({"gate": "agreement", "rank": 3}, "needs the graph"),
    ],
)
def test_invalid_settings_are_rejected(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ScalableNFNet(F, C, **settings)
