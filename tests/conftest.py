"""Fixtures that several rooms share."""

import os

os.environ.setdefault(
    "TRITON_INTERPRET", "1"
)  # read when Triton is first imported, which torch may do

from pathlib import Path

import pytest
import torch
from torch import Tensor

REPOSITORY = Path(__file__).parents[1]


def _find_data_root() -> Path | None:
    for place in (os.environ.get("NFGNN_DATA"), REPOSITORY.parent / "shared" / "data"):
        if place and (Path(place) / "WebKB").is_dir():
            return Path(place).resolve()
    return None


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Everything here is small: more threads would only wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder with the raw files of the real graphs."""
    root = _find_data_root()
    if root is None:
        pytest.skip("the raw files of the real graphs are not here: set NFGNN_DATA to their folder")
    return root


def random_graph(num_nodes: int, probability: float, seed: int) -> Tensor:
    """``edge_index`` of a random undirected graph of two components or more; node 0 is isolated."""
    generator = torch.Generator().manual_seed(seed)
    upper = (torch.rand(num_nodes, num_nodes, generator=generator) < probability).triu(1)
    half = num_nodes // 2
    upper[0], upper[:, 0], upper[:half, half:] = False, False, False
    return (upper | upper.T).nonzero().T.contiguous()
