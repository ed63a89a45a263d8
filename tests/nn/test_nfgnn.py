import torch
from conftest import random_graph

from nfgnn.nn import MLP, NFGNN, NFConv, PolyGNN


def test_nfgnn_is_an_mlp_and_a_filter() -> None:
    torch.manual_seed(0)
    model = NFGNN(12, 3, hidden_channels=8, K=4, rank=2).eval()
    x, edge_index = torch.randn(30, 12), random_graph(30, 0.2, 0)
    assert isinstance(model.mlp, MLP)
    assert isinstance(model.prop, NFConv)
    scores = model.mlp(x)
    out, psi = model.prop(scores, edge_index, return_coefficients=True)
    torch.testing.assert_close(model(x, edge_index), out)
    torch.testing.assert_close(model.coefficients(x, edge_index), psi)


def test_filter_dropout_acts_between_mlp_and_filter_and_only_in_training() -> None:
    torch.manual_seed(0)
    model = PolyGNN(12, 3, dropout=0.0, filter_dropout=0.99, K=0, init="all-pass")
    x, edge_index = torch.randn(200, 12), random_graph(200, 0.02, 0)
    assert (model(x, edge_index) == 0).float().mean() > 0.9
    torch.testing.assert_close(model.eval()(x, edge_index), model.mlp(x))


def test_edge_weights_matter() -> None:
    model = NFGNN(12, 3, K=2).eval()
    x, edge_index = torch.randn(30, 12), random_graph(30, 0.2, 0)
    weight = (edge_index.sum(0) % 3 + 1).float()
    assert not torch.allclose(model(x, edge_index), model(x, edge_index, weight))
    torch.testing.assert_close(
        model(x, edge_index), model(x, edge_index, torch.full((edge_index.shape[1],), 5.0))
    )


def test_a_trained_model_applies_to_another_graph() -> None:
    """No operator of the first graph is left behind."""
    torch.manual_seed(0)
    model = NFGNN(12, 3, K=3).eval()
    first, second = random_graph(30, 0.2, 0), random_graph(25, 0.3, 1)
    x = torch.randn(25, 12)
    alone = model(x, second)
    model(torch.randn(30, 12), first)
    torch.testing.assert_close(model(x, second), alone)
