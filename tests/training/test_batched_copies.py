"""Runs at once on a GPU: residual blocks neither copy tensors of nodes nor add them up."""

from collections import Counter
from typing import Any

import pytest
import torch
from conftest import random_graph
from helpers import triton_on_cpu  # noqa: F401  before any kernel is defined
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric.data import Data

from nfgnn.kernels import recurrence
from nfgnn.nn import residual_block, terms_linear
from nfgnn.nn.conv import spectral_conv
from nfgnn.spectral import csr
from nfgnn.training import RunConfig
from nfgnn.training.batched import BatchedTrainer, Member

N = 6
WIDTH = 16
RUNS = 2
COPIES = ("clone", "_to_copy", "add", "mul", "where", "cat", "fill_", "zero_")


class Copies(TorchDispatchMode):
    """Count operations that copy or combine tensors of all nodes and runs."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        out = function(*args, **(kwargs or {}))
        name = function._schema.name.removeprefix("aten::")
        if name in COPIES and sorted(out.shape) == sorted((N, RUNS, WIDTH)):
            self.counts[name] += 1
        return out


def copies_of_an_epoch(num_layers: int, precision: str) -> Counter[str]:
    torch.manual_seed(0)
    train = torch.arange(N) < N // 2
    data = Data(
        x=torch.randn(N, 5),
        edge_index=random_graph(N, 0.9, 0),
        y=torch.arange(N) % 2,
        num_classes=2,
        name="small",
    )
    settings = {
        "hidden_channels": WIDTH,
        "num_layers": num_layers,
        "precision": precision,
        "epochs": 1,
        "patience": 1,
        "dropout": 0.0,
    }
    config = RunConfig.resolve("ResidualSAGE", settings, None, None, "none").for_graph(data)
    members = [Member(config.build(5, 2), train, ~train, config.training) for _ in range(RUNS)]
    with torch.no_grad():
        trainer = BatchedTrainer(members, data)
        with Copies() as copies:
            trainer.epoch()
    return copies.counts


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_block_makes_no_copies(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one block costs is the difference between two blocks and one."""

    def is_fused(x: torch.Tensor) -> bool:
        return x.dtype in (torch.float32, torch.bfloat16)

    for module in (residual_block, terms_linear, spectral_conv):
        monkeypatch.setattr(module, "is_fused", is_fused)
    monkeypatch.setattr(csr, "backend", lambda x: recurrence)
    one = copies_of_an_epoch(1, precision)
    two = copies_of_an_epoch(2, precision)
    assert two == one
    assert one["add"] == 1  # of the gradients for the projected features
