"""The candidates of the portfolio: what is among them, and where they come from."""

from pathlib import Path

import pytest

from nfgnn.data import REGISTRY
from nfgnn.nn import MODELS, Scalable
from nfgnn.paper.search import portfolio_candidates as module
from nfgnn.paper.search.portfolio_candidates import (
    Candidate,
    config_key,
    make_candidates,
    portfolio_candidates,
    portfolio_columns,
    relatives,
)
from nfgnn.training import RunConfig


def test_candidates_differ_and_can_be_built() -> None:
    candidates = portfolio_candidates()
    assert 100 <= len(candidates) == len({config_key(c.config) for c in candidates})
    for candidate in candidates:
        candidate.config.build(2, 2, 2)
        assert candidate.origins <= REGISTRY.keys() | {"mixed"}


def test_a_file_of_candidates_is_read_as_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates = [Candidate(RunConfig.resolve("GCN", {"lr": 0.1}, None, None), stage=2)]
    candidates.append(Candidate(candidates[0].config, frozenset({"texas", "cora"})))
    (tmp_path / module.CANDIDATES).write_text(module.candidates_text(candidates))
    monkeypatch.setattr(module, "files", lambda _: tmp_path)
    assert list(portfolio_candidates.__wrapped__()) == candidates


@pytest.fixture(scope="module")
def made() -> tuple[Candidate, ...]:
    return make_candidates()


def test_the_default_of_every_model_is_among_those_trained_first(
    made: tuple[Candidate, ...],
) -> None:
    first = [candidate for candidate in made if candidate.stage == 0]
    assert not any(candidate.origins for candidate in first)
    training = {"epochs": 500, "patience": 100}
    for model, entry in MODELS.items():
        if issubclass(entry.model, Scalable):
            continue
        default = RunConfig.resolve(model, training, None, None)
        assert default in [candidate.config for candidate in first]


def test_winners_name_every_graph_that_they_are_the_preset_of(
    made: tuple[Candidate, ...],
) -> None:
    """The same table ships for Texas and for Cornell."""
    texas = RunConfig.resolve("LINK", {"epochs": 500, "patience": 100}, "texas", "full")
    (winner,) = (c for c in made if c.config == texas)
    assert winner.origins == {"texas", "cornell", "cornell-genuine"}


def test_each_winner_differs_as_much_as_possible_from_the_earlier_ones() -> None:
    def gcn(**settings: float) -> RunConfig:
        return RunConfig.resolve("GCN", settings, None, None, "none")

    near = Candidate(gcn(lr=0.1))
    far = Candidate(gcn(lr=0.1, dropout=0.1, weight_decay=0.1))
    # As far from the default as the one above, and earlier in the list.
    beside = Candidate(gcn(lr=0.1, dropout=0.1, weight_decay=0.2))
    other = Candidate(gcn(hidden_channels=8, num_layers=3))
    same = Candidate(gcn())
    chosen = module._most_different([near, same, beside, far, other], gcn(), 3)
    assert chosen == [beside, other, near]
    assert module._most_different([same], gcn(), 3) == []


def test_graphs_with_common_nodes_are_relatives_of_each_other() -> None:
    names = {column.name for column in portfolio_columns()}
    assert len(portfolio_columns()) == len(set(portfolio_columns()))
    for name in names:
        for other in relatives(name) & names:
            assert name in relatives(other)
    assert relatives("cora") == {"cora"}
