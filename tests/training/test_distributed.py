"""Several processes: the losses of one, also when one of them is killed on the way."""

import contextlib
import csv
import importlib.util
import os
import signal
import sys
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from helpers.experiments import experiment, run_quietly
from helpers.forked_python import start_python
from helpers.small_stores import K, graph, small_store

from nfgnn import NodeClassifier, split
from nfgnn.cli import main
from nfgnn.errors import UserError
from nfgnn.training import RunConfig
from nfgnn.training.distributed import ProcessGroup, launched_by_torchrun

COMMAND = ["train", "store", "--runs", "1", "--seed", "5", "--resume"]
SETTINGS = [
    "dropout=0",
    "batch_size=33",
    "epochs=60",
    "patience=500",
    "metric=log_loss",  # the processes join their predictions
    "class_weight=balanced",
]  # 33 rows are shared unevenly


def torchrun(*arguments: str) -> list[str]:
    launcher = [
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        *arguments,
        "-m",
        "nfgnn",
    ]
    return [*launcher, *COMMAND, *(word for setting in SETTINGS for word in ("--set", setting))]


def worker(launcher: int, rank: int) -> int | None:
    """The process of this rank below torchrun."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            environment = (
                (folder / "environ").read_bytes().split(b"\0") if parent == launcher else []
            )
        except (OSError, IndexError):
            continue
        if f"RANK={rank}".encode() in environment:
            return int(folder.name)
    return None


def curve(run: Path) -> torch.Tensor:
    with (run / "seed-5" / "history.csv").open() as file:
        rows = list(csv.reader(file))[1:]
    return torch.tensor([[float(value) for value in row] for row in rows], dtype=torch.float64)


def test_two_processes_of_which_one_is_killed_equal_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_store(tmp_path / "store", graph())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    command = [*torchrun("--max-restarts", "1"), "--out", "two"]
    launcher = start_python(*command, output=Path("log"))
    while not Path(".two.partial/seed-5.checkpoint").exists() and launcher.is_alive():
        time.sleep(0.02)
    assert launcher.pid is not None
    victim = worker(launcher.pid, 1)
    assert victim is not None, Path("log").read_text()
    os.kill(victim, signal.SIGKILL)
    launcher.join(120)
    output = Path("log").read_text()
    assert launcher.exitcode == 0, output
    assert "exitcode: -9" in output  # torchrun saw it and started all again
    assert output.count("run folder") == 1  # one process prints
    monkeypatch.setattr(
        sys,
        "argv",
        ["nfgnn", *COMMAND, *(w for s in SETTINGS for w in ("--set", s)), "--out", "one"],
    )
    with contextlib.suppress(SystemExit):
        main()
    torch.testing.assert_close(curve(Path("two")), curve(Path("one")), rtol=1e-4, atol=1e-5)


def test_the_check_for_gpus_compares_equal_trainings(tmp_path: Path) -> None:
    """A group of one process trains through DistributedDataParallel, and ends at the same bits."""
    path = Path(__file__).parents[2] / "benchmarks" / "distributed_gpu_check.py"
    spec = importlib.util.spec_from_file_location("distributed_gpu_check", path)
    assert spec is not None
    assert spec.loader is not None
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    store = check.make_store(tmp_path / "store").path
    alone = check.trained(store, "cpu")
    collectives = []
    all_reduce = dist.all_reduce

    def counted(values: torch.Tensor) -> None:
        collectives.append(values.shape)
        all_reduce(values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dist, "all_reduce", counted)
        check.work(0, 1, "gloo", "cpu", store, tmp_path)
    grouped = torch.load(tmp_path / "result.pt")
    assert collectives  # losses go through the process group
    assert check.differences(grouped, alone) == [0, 0, 0]
    assert alone["accuracy"] > 0.5  # of four classes
    worse = {**grouped, "losses": 1.1 * grouped["losses"]}
    assert "**1e-01**" in check.row("worse", worse, alone, limit=1e-3)


def test_what_several_processes_cannot_do_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = small_store(tmp_path / "store", graph()).labels()
    monkeypatch.setattr(ProcessGroup, "current", classmethod(lambda cls: cls(0, 2)))
    with pytest.raises(UserError, match="batch_norm = true with several processes needs GPUs"):
        NodeClassifier("ScalableNFGNN", batch_norm=True, device="cpu").fit(split(rows, "full", 0))
    config = RunConfig.resolve("NFGNN", {}, None, "full")
    with pytest.raises(UserError, match="NFGNN can only be trained by one process"):
        run_quietly(experiment(graph(), "full", [0], config), tmp_path / "run")


def test_a_lost_connection_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> int:
        raise RuntimeError("[gloo/transport/tcp/pair.cc] Connection closed by peer")

    monkeypatch.setattr(ProcessGroup, "current", classmethod(lambda cls: cls(0, 2)))
    monkeypatch.setattr(ProcessGroup, "broadcast", lost)
    rows = small_store(tmp_path / "store", graph()).labels()
    config = RunConfig.resolve("ScalableNFGNN", {"K": K}, None, "full", "none")
    with pytest.raises(UserError, match="another process of the 2 has ended, so this one ends too"):
        run_quietly(experiment(rows, "full", [0], config), tmp_path / "run")


def test_alone_there_is_one_process() -> None:
    assert ProcessGroup.current() == ProcessGroup(0, 1)
    assert not launched_by_torchrun()
    assert torch.equal(ProcessGroup().sum(torch.ones(2)), torch.ones(2))
    assert ProcessGroup().broadcast(7, torch.device("cpu")) == 7
