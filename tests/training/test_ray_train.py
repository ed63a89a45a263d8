"""Workers of a Ray cluster: the losses of one process, also when a worker is killed on the way."""

import contextlib
import os
import shutil
import signal
import sys
import time
import uuid
from pathlib import Path

import pytest
import torch
from helpers.experiments import experiment
from helpers.forked_python import start_python
from helpers.s3_server import S3Server
from helpers.small_stores import graph, small_store

from nfgnn.cli import main
from nfgnn.errors import UserError
from nfgnn.store import Store
from nfgnn.training import RunConfig, train_on_ray
from nfgnn.training.executors.ray_train import _graph_of

COMMAND = [
    "train",
    "store",
    "--runs",
    "1",
    "--set",
    "dropout=0",
    "--set",
    "batch_size=33",
    "--set",
    "epochs=40",
]


def worker(mark: str) -> int | None:
    """A worker of the cluster that was started with this mark in its environment."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            title, environment = ((folder / name).read_bytes() for name in ("cmdline", "environ"))
            if b"RayTrainWorker" in title and mark.encode() in environment:
                return int(folder.name)
    return None


def test_workers_on_other_machines_copy_a_remote_store(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = small_store(tmp_path / "store", graph())
    for file in local.path.iterdir():
        s3.buckets["bucket"][f"for-workers/{file.name}"] = file.read_bytes()
    shared = _graph_of(Store.open("s3://bucket/for-workers"))
    shutil.rmtree(tmp_path / "store")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other-machine"))
    copy = shared.data.rows
    assert copy.path.is_relative_to(tmp_path / "other-machine")
    assert copy.manifest == local.manifest


# The cluster starts workers four times, which takes minutes on a busy machine.
@pytest.mark.timeout(900)
def test_workers_of_which_one_is_killed_equal_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    small_store(tmp_path / "store", graph())
    monkeypatch.chdir(tmp_path)
    mark = uuid.uuid4().hex
    environment = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "NFGNN_TEST_MARK": mark,
        "OMP_NUM_THREADS": "1",
        "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",
        # An actor that only clouds need, and that takes seconds to start.
        "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    command = ["-m", "nfgnn", *COMMAND, "--out", "two", "--engine", "ray", "--workers", "2"]
    driver = start_python(*command, output=Path("log"))
    while not Path(".two.partial/seed-0.checkpoint").exists() and driver.is_alive():
        time.sleep(0.02)
    victim = worker(mark)
    assert victim is not None, Path("log").read_text()
    os.kill(victim, signal.SIGKILL)
    driver.join(180)
    output = Path("log").read_text()
    assert driver.exitcode == 0, output
    assert "Ray: a local cluster, 1 node, 2 CPUs" in output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log", "store", "two"]
    monkeypatch.setattr(sys, "argv", ["nfgnn", *COMMAND, "--out", "one"])
    with contextlib.suppress(SystemExit):
        main()
    curves = []
    for run in ("one", "two"):
        lines = Path(run, "seed-0", "history.csv").read_text().splitlines()[1:]
        curves.append(torch.tensor([[float(value) for value in line.split(",")] for line in lines]))
    torch.testing.assert_close(curves[1], curves[0], rtol=1e-4, atol=1e-5)


def test_ray_trains_on_stores_only(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    config = RunConfig.resolve("ScalableNFGNN", {}, None, "full")
    with pytest.raises(UserError, match="--engine ray trains on a store"):
        train_on_ray(experiment(graph(), "full", [0], config), tmp_path / "run", workers=2)
    assert list(tmp_path.iterdir()) == []
