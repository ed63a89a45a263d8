"""Training through the GPU's kernels, which Triton's interpreter runs on the CPU: many runs against single ones."""

import pytest
import torch
import triton_on_cpu  # noqa: F401  before any kernel is defined
from torch_geometric.data import Data

from nfgnn import load_dataset, split
from nfgnn.nn.conv import gated_sum
from nfgnn.propagate import csr, recurrence, triton_backend
from nfgnn.training import RunConfig, fit
from nfgnn.training.fit_many import Member, fit_many


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sparse product and gated sum through Triton."""
    for module in (csr, recurrence):
        monkeypatch.setattr(module, "backend", lambda x: triton_backend)
    monkeypatch.setattr(gated_sum, "_on_gpu", lambda terms: True)


def runs(data: Data, model: str, settings: list[dict]) -> list[Member]:
    members = []
    for seed, own in enumerate(settings):
        config = RunConfig.resolve(model, {"epochs": 2, "K": 2, "hidden_channels": 4, **own}, None, None, "none")
        torch.manual_seed(seed)
        part = split(data, "full", seed)
        members.append(
            Member(
                config.build(data.num_features, data.num_classes, data.num_nodes),
                part.train_mask,
                part.val_mask,
                config.training,
            )
        )
    return members


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_without_dropout_equal_to_the_torch_backend(count: int, sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    data = load_dataset("mixed", num_nodes=24, num_features=6)
    data.x = data.x.to_sparse_csr() if sparse else data.x
    settings = [{"dropout": 0.0, "lr": 0.01 * (seed + 1)} for seed in range(count)]
    expected = [
        fit(
            m.model,
            Data(x=data.x, edge_index=data.edge_index, y=data.y, train_mask=m.train_mask, val_mask=m.val_mask),
            m.config,
        )
        for m in runs(data, "NFGNN", settings)
    ]
    for module in (csr, recurrence):
        monkeypatch.setattr(module, "backend", lambda x: triton_backend)
    monkeypatch.setattr(gated_sum, "_on_gpu", lambda terms: True)
    for history, reference in zip(fit_many(runs(data, "NFGNN", settings), data), expected):
        assert history.val_loss == pytest.approx(reference.val_loss, rel=1e-4)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("rates", [(0.5, 0.5), (0.2, 0.6)])
@pytest.mark.parametrize("model", ["NFGNN", "BernNet"])
def test_dropout_on_sparse_features(model: str, rates: tuple[float, float]) -> None:
    data = load_dataset("mixed", num_nodes=24, num_features=6)
    data.x = data.x.to_sparse_csr()
    histories = fit_many(runs(data, model, [{"dropout": rate} for rate in rates]), data)
    assert all(torch.isfinite(torch.tensor(history.train_loss)).all() for history in histories)
