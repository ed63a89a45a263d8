"""Cheaper forms of configurations."""

from nfgnn.auto.cheaper_forms import cheaper_forms
from nfgnn.training import RunConfig


def config(model: str, **settings: object) -> RunConfig:
    return RunConfig.resolve(model, settings, None, None, "none")


def test_a_residual_network_has_a_narrow_form_and_a_narrow_deep_form() -> None:
    given = config("NFNet", hidden_channels=128, num_layers=2, lr=0.003, metric="roc_auc")
    narrow, deep = cheaper_forms(given)
    assert narrow == config("NFNet", hidden_channels=64, num_layers=2, lr=0.003, metric="roc_auc")
    assert deep == config("NFNet", hidden_channels=64, num_layers=4, lr=0.003, metric="roc_auc")


def test_depths_outside_the_search_space_are_left_out() -> None:
    given = config("ResidualGCN", hidden_channels=128, num_layers=8)
    assert cheaper_forms(given) == [config("ResidualGCN", hidden_channels=64, num_layers=8)]
    given = config("MLP", hidden_channels=256, num_layers=2)
    assert cheaper_forms(given) == [config("MLP", hidden_channels=128, num_layers=2)]


def test_narrow_networks_and_models_without_a_width_have_no_cheaper_form() -> None:
    assert cheaper_forms(config("NFGNN", hidden_channels=64)) == []
    assert cheaper_forms(config("LINK")) == []
