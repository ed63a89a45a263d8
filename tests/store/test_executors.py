"""Two simulated nodes of a Ray cluster compute a store; one of them is killed on the way."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.store_graphs import files_of, planned
from torch_geometric.data import Data

from nfgnn.store import MemorySource, Settings, precompute

pytestmark = pytest.mark.filterwarnings("ignore")
SETTINGS = Settings(K=10, memory=10**9, features="raw")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield made
    made.shutdown()


def middling_graph() -> MemorySource:
    rng = np.random.default_rng(0)
    source, target = rng.integers(0, 20_000, (2, 400_000))
    edges = np.unique(np.sort(np.stack([source, target])[:, source != target], axis=0), axis=1)
    data = Data(
        x=torch.from_numpy(rng.standard_normal((20_000, 24)).astype(np.float32)),
        edge_index=torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1)),
        y=torch.from_numpy(rng.integers(0, 2, 20_000)),
    )
    return MemorySource(data)


def test_a_node_is_killed_on_the_way(cluster: Any, tmp_path: Path) -> None:
    source = middling_graph()
    precompute(
        source,
        tmp_path / "here",
        SETTINGS,
        chosen=planned(source, tmp_path, SETTINGS, cut="resident", width=24),
    )
    doomed = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    said: list[str] = []
    cut = planned(source, tmp_path, SETTINGS, cut="streamed", width=1, stream_entries=50_000)
    options = {"engine": "ray", "address": cluster.address, "chosen": cut, "say": said.append}
    run = threading.Thread(
        target=precompute, args=(source, tmp_path / "there", SETTINGS), kwargs=options
    )
    run.start()
    while run.is_alive() and len(list((tmp_path / "there").glob("work/block-????"))) < 2:
        time.sleep(0.02)
    assert run.is_alive()
    cluster.remove_node(doomed, allow_graceful=False)
    run.join(timeout=120)
    assert not run.is_alive()
    assert f"cluster at {cluster.address}, 2 nodes" in said[0]
    assert files_of(tmp_path / "there") == files_of(tmp_path / "here")
