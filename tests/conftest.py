"""Fixtures that the tests of several packages share."""

import os
from collections.abc import Iterator

# Triton reads this when it is first imported, which torch may do.
os.environ.setdefault("TRITON_INTERPRET", "1")

from pathlib import Path

import pytest
import torch
from helpers.empty_figures import write_empty_figures
from helpers.s3_server import S3Server, s3_server
from torch import Tensor

REPOSITORY = Path(__file__).parents[1]
LONG_TESTS = (
    "training/test_ray_train.py",
    "kernels/test_kernels_compile.py",
    "cli/test_ray.py",
    "docs/test_build.py",
    "training/test_distributed.py",
    "store/test_executors.py",
    "test_fuzz.py",
    "golden/test_golden.py",
)
"""Files with tests that take longest, or that wait for other processes most of their time."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the long tests, so that no worker waits for one of them at the end."""
    tests = REPOSITORY / "tests"
    places = {tests / name: place for place, name in enumerate(LONG_TESTS)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def _find_data_root() -> Path | None:
    for place in (os.environ.get("NFGNN_DATA"), REPOSITORY.parent / "shared" / "data"):
        if place and (Path(place) / "WebKB").is_dir():
            return Path(place).resolve()
    return None


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Use one thread: the graphs are small, and more threads would only wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _empty_figures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write figures of runs and reports without drawing them, which takes longer than training.

    The commands still read what the figures show. Tests with the mark ``figures`` draw them.
    """
    if request.node.get_closest_marker("figures") is None:
        write_empty_figures(monkeypatch)


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Return the folder with the raw files of the real graphs."""
    root = _find_data_root()
    if root is None:
        pytest.skip("raw files of real graphs are not available: set NFGNN_DATA to their folder")
    return root


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """Return a server with an empty bucket ``bucket``, which s3:// URLs refer to.

    The cache folder is empty, too.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with s3_server("test") as server:
        server.buckets["bucket"] = {}
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        yield server


def random_graph(num_nodes: int, probability: float, seed: int) -> Tensor:
    """Return edges of a random undirected graph of several components; node 0 is isolated."""
    generator = torch.Generator().manual_seed(seed)
    upper = (torch.rand(num_nodes, num_nodes, generator=generator) < probability).triu(1)
    half = num_nodes // 2
    upper[0] = False
    upper[:, 0] = False
    upper[:half, half:] = False
    return (upper | upper.T).nonzero().T.contiguous()
