"""Models that do not fit into the memory."""

import pytest
from torch_geometric.data import Data

from nfgnn.auto.run_memory import expected_bytes, lacking_memory
from nfgnn.training import RunConfig


def test_the_estimate_counts_hidden_values() -> None:
    config = RunConfig.resolve(
        "NFGNN", {"hidden_channels": 32, "num_layers": 2, "K": 5}, None, None, "none"
    )
    assert expected_bytes(config, Data(num_nodes=1000)) == 16 * 1000 * 32 * 8


def test_a_model_that_does_not_fit_is_named_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfgnn.auto.run_memory.available_memory", lambda: 2.0**30)
    config = RunConfig.resolve("GCN", {"hidden_channels": 64}, None, None, "none")
    assert lacking_memory(config, Data(num_nodes=10_000)) is None
    message = lacking_memory(config, Data(num_nodes=10_000_000))
    assert message is not None
    assert "28.6 GiB" in message
    assert "only 1.0 GiB" in message
