"""Ensembles of seeds against runs that are trained one by one."""

import pytest
import torch

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.auto import fit_seed_ensemble
from nfgnn.errors import UserError
from nfgnn.training import RunConfig


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_the_ensemble_is_the_mean_of_single_runs(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The way of a GPU, without one.
    choice = "nfgnn.auto.seed_ensemble.resolve_device"
    monkeypatch.setattr(choice, lambda device: torch.device(kind))
    data = split(load_dataset("karate"), "full", 0)
    # Without dropout, runs that are trained together equal single runs.
    settings = {"epochs": 20, "dropout": 0.0, "filter_dropout": 0.0}
    config = RunConfig.resolve("GPRGNN", settings, None, None, "none")
    ensemble = fit_seed_ensemble(config, data, [3, 4, 5], "cpu")
    single = [
        NodeClassifier.from_config(config, seed, "cpu").fit(data).predict_proba(data)
        for seed in (3, 4, 5)
    ]
    expected = torch.stack(single).mean(0)
    assert not torch.allclose(single[0], single[1], atol=1e-3)
    torch.testing.assert_close(ensemble.predict_proba(data), expected, atol=1e-5, rtol=0)


def test_an_ensemble_without_seeds_is_refused() -> None:
    data = split(load_dataset("karate"), "full", 0)
    config = RunConfig.resolve("GPRGNN", {}, None, None, "none")
    with pytest.raises(UserError, match="at least one seed"):
        fit_seed_ensemble(config, data, [])
