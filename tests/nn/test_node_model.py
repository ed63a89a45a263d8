"""The contract between models and trainers: defaults, and modules that do not derive from it."""

import copy

import pytest
import torch
import torch.nn.functional as F
from conftest import random_graph
from torch import Tensor, nn

from nfgnn import load_dataset, split
from nfgnn.errors import UserError
from nfgnn.nn import MLP, NodeModel, PolyConv, as_node_model
from nfgnn.nn.models import MODELS, register_model
from nfgnn.training import TrainingConfig, fit


class Plain(nn.Module):
    """A linear map with dropout, then a filter; knows nothing of nfgnn's contract."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels)
        self.prop = PolyConv(K=2)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None
    ) -> Tensor | tuple[Tensor, Tensor]:
        hidden = F.dropout(self.lin(x), 0.5, self.training)
        return self.prop(hidden, edge_index, edge_weight)


class Derived(Plain, NodeModel):
    """The same as a :class:`NodeModel`."""


@pytest.fixture
def graph() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(12, 5), random_graph(12, 0.3, seed=0)


def test_forward_pair_evaluates_first_and_then_trains(graph: tuple[Tensor, Tensor]) -> None:
    model = Derived(5, 3)
    torch.manual_seed(1)
    training, evaluation = model.forward_pair(*graph)
    torch.manual_seed(1)
    assert torch.equal(training, model.train()(*graph))
    assert torch.equal(evaluation, model.eval()(*graph))
    assert training.requires_grad
    assert not evaluation.requires_grad


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_training_loss_is_the_cross_entropy(graph: tuple[Tensor, Tensor], smoothing: float) -> None:
    model, nodes, y = Derived(5, 3).eval(), torch.tensor([1, 4, 7]), torch.tensor([0, 2, 1])
    torch.manual_seed(1)
    computed = model.training_loss(*graph, None, nodes, y, smoothing)
    assert model.training
    torch.manual_seed(1)
    logits = model(*graph)
    expected = F.cross_entropy(logits[nodes], y, label_smoothing=smoothing)
    assert torch.equal(computed, expected)
    given = model.training_loss(*graph, None, nodes, y, smoothing, logits)
    assert torch.equal(given, expected)


def test_filter_is_the_submodule_prop() -> None:
    model = Derived(5, 3)
    assert model.filter is model.prop
    assert MLP(5, 3).filter is None


def test_models_without_a_polynomial_filter_have_no_coefficients(
    graph: tuple[Tensor, Tensor],
) -> None:
    model = MLP(5, 3)
    assert not model.has_coefficients
    with pytest.raises(UserError, match="MLP has no polynomial filter"):
        model.coefficients(*graph)


def test_flags_agree_with_what_a_model_overrides() -> None:
    for entry in MODELS.values():
        model = entry.model
        assert model.shares_passes == (model.forward_pair is not NodeModel.forward_pair)
        assert model.own_loss == (model.training_loss is not NodeModel.training_loss)
        assert model.has_coefficients == (model.coefficients is not NodeModel.coefficients)


def test_a_plain_module_is_trained_like_a_model() -> None:
    data = split(load_dataset("karate"), "stratified", seed=0)
    data.x = data.x.to_dense()
    torch.manual_seed(0)
    plain = Plain(data.num_features, data.num_classes)
    derived = Derived(data.num_features, data.num_classes)
    derived.load_state_dict(copy.deepcopy(plain.state_dict()))
    histories = []
    for model in (plain, derived):
        torch.manual_seed(1)
        histories.append(fit(model, data, TrainingConfig(epochs=5, filter_lr=0.5)))
    assert histories[0].train_loss == histories[1].train_loss
    assert all(map(torch.equal, plain.parameters(), derived.parameters()))


def test_a_model_is_its_own_adapter() -> None:
    model = MLP(5, 3)
    assert as_node_model(model) is model


def test_registered_models_derive_from_node_model() -> None:
    with pytest.raises(TypeError, match=r"Plain cannot be registered: derive it from nfgnn\.nn"):
        register_model("A plain module", 2024, "O(nc)")(Plain)  # type: ignore[type-var]
    assert "Plain" not in MODELS
