"""The portfolio that ships, and files of the user in its place."""

from pathlib import Path

import pytest
import torch
from torch_geometric.utils import to_undirected

from nfgnn.auto import BOTH, FEATURES, LINKS, load_portfolio, model_family
from nfgnn.errors import UserError
from nfgnn.nn import MODELS
from nfgnn.training import RunConfig

SCALABLE = ("ScalableNFGNN", "ScalablePolyGNN", "ScalableBernNet", "ScalableGPRGNN", "ScalableSGC")
"""Their edges are in the features that they are given."""


def test_shipped_configurations_are_complete_and_can_be_built() -> None:
    portfolio = load_portfolio()
    assert {FEATURES, LINKS, BOTH} <= {entry.family for entry in portfolio}
    for entry in portfolio:
        entry.config.build(3, 2, 5)
        assert entry.config.training.metric == "auto"
        assert entry.config.training.select == "auto"


def test_a_file_replaces_the_portfolio_in_its_order(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        '[[configuration]]\nmodel = "link"\n\n[[configuration]]\nmodel = "GCN"\nlr = 0.5\n'
    )
    first, second = load_portfolio(file)
    assert (first.config.model, first.family) == ("LINK", LINKS)
    # No preset, not even the default one of the model.
    assert second.config == RunConfig.resolve("GCN", {"lr": 0.5}, None, None, "none")
    assert second.family == BOTH


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "one table"),
        ("lr = 1\n", "one table"),
        ("[[configuration]]\nlr = 0.1\n", "configuration 1: the model is missing"),
        ('[[configuration]]\nmodel = "GCN"\nK = 3\n', "configuration 1: GCN has no setting 'K'"),
        ('[[configuration]]\nmodel = "GCN"\n' * 2, "configuration 2: is a duplicate"),
        ("configuration = 3\n", "one table"),
        ("configuration = [3]\n", "configuration 1: the model is missing"),
        ("[[", "not valid TOML"),
    ],
)
def test_invalid_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=message):
        load_portfolio(file)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"portfolio file .* does not exist"):
        load_portfolio(tmp_path / "none.toml")


@pytest.mark.parametrize("model", [name for name in MODELS if name not in SCALABLE])
def test_families_say_what_the_logits_depend_on(model: str) -> None:
    """Other features and other edges change the logits if and only if the model reads them."""
    torch.manual_seed(0)
    x = torch.rand(12, 5)
    ring = torch.arange(12)
    edges = to_undirected(torch.stack([ring, (ring + 1) % 12]))
    other_edges = to_undirected(torch.stack([ring, (ring + 5) % 12]))
    module = RunConfig.resolve(model, {}, None, None, "none").build(5, 3, 12).eval()
    with torch.no_grad():
        # Some filters are the identity before they are trained.
        for parameter in module.parameters():
            parameter += 0.1 * torch.rand_like(parameter)
        before = module(x, edges)
        reads_features = not torch.allclose(before, module(torch.rand(12, 5), edges))
        reads_edges = not torch.allclose(before, module(x, other_edges))
    expected = {(True, False): FEATURES, (False, True): LINKS, (True, True): BOTH}
    assert model_family(model) == expected[reads_features, reads_edges]
