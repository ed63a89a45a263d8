"""Executors compute all missing blocks: in process, and on a Ray cluster that loses a node."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.store_graphs import files_of, planned, small_graph
from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.store import MemorySource, Settings, precompute
from nfgnn.store.executors import make_executor

SETTINGS = Settings(K=10, memory=10**9, features="raw")


def test_progress_counts_the_terms_of_all_blocks(tmp_path: Path) -> None:
    source = MemorySource(small_graph())
    plan = planned(source, tmp_path, SETTINGS, cut="resident", width=3)
    reports: list[tuple[str, int, int]] = []
    precompute(
        source, tmp_path / "s", SETTINGS, chosen=plan, report=lambda *event: reports.append(event)
    )
    done = [event[1:] for event in reports if event[0] == "computing terms"]
    assert done == [(term, 33) for term in range(1, 34)]


def test_unknown_engines_are_rejected() -> None:
    with pytest.raises(UserError, match="unknown --engine slurm: choose local or ray"):
        make_executor("slurm", None, print)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "include_dashboard": False}
    simulated = Cluster(initialize_head=True, head_node_args=head)
    yield simulated
    simulated.shutdown()


def medium_graph() -> MemorySource:
    rng = np.random.default_rng(0)
    source, target = rng.integers(0, 20_000, (2, 400_000))
    edges = np.unique(np.sort(np.stack([source, target])[:, source != target], axis=0), axis=1)
    data = Data(
        # The terms of 23 columns have the same bits as those of one column on all processors.
        x=torch.from_numpy(rng.standard_normal((20_000, 23)).astype(np.float32)),
        edge_index=torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1)),
        y=torch.from_numpy(rng.integers(0, 2, 20_000)),
    )
    return MemorySource(data)


@pytest.mark.filterwarnings("ignore")
def test_a_node_of_the_cluster_is_killed(cluster: Any, tmp_path: Path) -> None:
    source = medium_graph()
    plan = planned(source, tmp_path, SETTINGS, cut="resident", width=23)
    precompute(source, tmp_path / "local", SETTINGS, chosen=plan)
    doomed = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    lines: list[str] = []
    plan = planned(source, tmp_path, SETTINGS, cut="streamed", width=1, stream_entries=50_000)
    options = {"engine": "ray", "address": cluster.address, "chosen": plan, "say": lines.append}
    run = threading.Thread(
        target=precompute, args=(source, tmp_path / "ray", SETTINGS), kwargs=options
    )
    run.start()
    while run.is_alive() and len(list((tmp_path / "ray").glob("work/block-????"))) < 2:
        time.sleep(0.02)
    assert run.is_alive()
    cluster.remove_node(doomed, allow_graceful=False)
    run.join(timeout=120)
    assert not run.is_alive()
    assert f"cluster at {cluster.address}, 2 nodes" in lines[0]
    assert files_of(tmp_path / "ray") == files_of(tmp_path / "local")
