"""Runs on a Ray cluster: the results of this machine, also when workers or the command are killed.

All tests share one cluster, because its workers take seconds to start.
"""

import json
import math
import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helpers.forked_python import start_python

from nfgnn import AutoNodeClassifier
from nfgnn.data import load_dataset, split
from nfgnn.errors import UserError
from nfgnn.paper import make_plan, run_missing
from nfgnn.progress import Progress
from nfgnn.ray_cluster import ray_cluster
from nfgnn.training import (
    Graph,
    InMemory,
    InProcess,
    RayTasks,
    Records,
    RunConfig,
    RunResult,
    RunSpec,
    TimeLimit,
    execute,
)
from nfgnn.training.executors import ray_tasks

pytestmark = pytest.mark.filterwarnings("ignore")
QUIET = Progress(quiet=True)
GRAPH = Graph.of(load_dataset("karate"))
PORTFOLIO = """
[[configuration]]
model = "GCN"
epochs = 12
[[configuration]]
model = "MLP"
epochs = 12
[[configuration]]
model = "LINK"
epochs = 12
"""
AUTO = ("auto", "karate", "--max-runs", "20", "--portfolio", "three.toml", "--device", "cpu")
TIMES = ("seconds", "seconds_to_first", "folder", "command")


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Start a cluster of two CPUs, to which executors of this process are then connected."""
    pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Workers unpickle functions of this file.
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, _import_folders())))
        with ray_cluster(None, QUIET.say, cpus=2) as ray:
            yield str(ray.get_runtime_context().gcs_address)


def _import_folders() -> list[Path]:
    repository = Path(__file__).parents[2]
    return [repository, repository / "tests"]


def specs(seeds: range, **settings: Any) -> list[RunSpec]:
    config = RunConfig.resolve("GCN", {"epochs": 3, **settings}, None, None, "none")
    return [RunSpec(GRAPH, "stratified", seed, config) for seed in seeds]


def losses(result: RunResult) -> list[float]:
    return result.classifier.history_.val_loss


def kill_worker(mark: Path, result: RunResult) -> list[float]:
    """Kill the worker of the first seed, unless that was done before."""
    if result.spec.seed == 0 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return losses(result)


def outcome(folder: Path) -> Any:
    """Return the result of a search without its times."""
    return _without_times(json.loads((folder / "auto.json").read_text()))


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(part) for key, part in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [_without_times(part) for part in value]
    return value


def recorded(path: Path) -> list[Any]:
    """Return the runs of a database without their times."""
    with Records(path) as records:
        found = [(run.key, dict(run.metrics)) for run in records.all()]
    for _, metrics in found:
        del metrics["seconds"]
    return found


def test_a_killed_worker_is_restarted(cluster: str, tmp_path: Path) -> None:
    here = InMemory(losses)
    execute(specs(range(3)), here, InProcess(single_thread=True), QUIET, "cpu")
    there = InMemory(partial(kill_worker, tmp_path / "killed"))
    with RayTasks(None, QUIET.say) as executor:
        assert execute(specs(range(3)), there, executor, QUIET, "cpu") == []
    assert (tmp_path / "killed").exists()
    for spec in specs(range(3)):
        assert there.find(spec) == here.find(spec)


def test_a_run_whose_workers_die_fails_alone(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_tasks, "_MAX_RESTARTS", 0)
    results = InMemory(partial(kill_worker, tmp_path / "killed"))
    with RayTasks(None, QUIET.say) as executor:
        (failure,) = execute(specs(range(2)), results, executor, QUIET, "cpu")
    assert failure.spec.seed == 0
    assert "its worker died" in failure.message
    assert results.missing(specs(range(2))) == specs(range(1))


def test_a_time_limit_holds_on_the_cluster(cluster: str) -> None:
    limit = TimeLimit(longest=0.0)
    results = InMemory(losses)
    with RayTasks(None, QUIET.say, limit=limit) as executor:
        execute(specs(range(1), epochs=1000), results, executor, QUIET, "cpu")
        assert [len(found) for found in results.results] == [1]
        limit.longest = math.inf
        limit.end = time.monotonic() + 60
        limit.estimate = lambda batch: 61.0 if batch[0].seed == 1 else 1.0
        results = InMemory(losses)
        execute(specs(range(3)), results, executor, QUIET, "cpu")
    assert results.missing(specs(range(3))) == specs(range(1, 2))


def test_capacity_counts_runs_of_one_cpu_or_of_a_node(cluster: str) -> None:
    for options, expected in (({}, 2), ({"whole_nodes": True}, 1), ({"workers": 1}, 1)):
        with RayTasks(None, QUIET.say, **options) as executor:
            assert executor.capacity("cpu") == expected


def test_an_error_of_the_user_keeps_its_message(
    cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NFGNN_IMPORT", "no_such_module")
    with (
        RayTasks(None, QUIET.say) as executor,
        pytest.raises(UserError, match=r"^--import no_such_module: the module cannot be imported"),
    ):
        execute(specs(range(1)), InMemory(losses), executor, QUIET, "cpu")


def test_reproduce_makes_the_same_records(cluster: str, tmp_path: Path) -> None:
    quick = {"epochs": 4}
    plan = make_plan("full", ["karate"], ["MLP", "SGC"], runs=2, settings=quick)
    for name, executor in (("here", InProcess()), ("there", RayTasks(None, QUIET.say))):
        with Records(tmp_path / name) as records, executor:
            assert run_missing([plan], records, None, executor, QUIET, "cpu") == []
    assert len(recorded(tmp_path / "here")) == 4
    assert recorded(tmp_path / "there") == recorded(tmp_path / "here")


def test_tune_tries_the_same_settings(cluster: str, call, tmp_path: Path) -> None:
    command = ("tune", "karate", "--model", "MLP", "--protocol", "stratified", "--trials", "9")
    command += ("--seeds", "0,1", "--set", "epochs=5", "--device", "cpu")
    status, here, _ = call(*command, "--storage", "here")
    assert status == 0
    status, there, messages = call(*command, "--storage", "there", "--engine", "ray")
    assert status == 0
    assert "1 node, 2 CPUs" in messages
    assert there == here
    assert len(recorded(tmp_path / "here")) == 20
    assert recorded(tmp_path / "there") == recorded(tmp_path / "here")


def test_auto_finds_the_same_also_when_the_command_is_killed(
    cluster: str, call, tmp_path: Path
) -> None:
    Path("three.toml").write_text(PORTFOLIO)
    status, _, messages = call(*AUTO, "--workers", "1", "--out", "here")
    assert status == 0, messages
    ray = ("--engine", "ray", "--ray-address", cluster, "--out", "there")
    process = start_python("-m", "nfgnn", *AUTO, *ray, "--workers", "1", output=Path("log"))
    while process.is_alive() and len(list(Path().glob(".there.partial/runs/*/run.json"))) < 2:
        time.sleep(0.01)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL, Path("log").read_text()
    status, _, messages = call(*AUTO, *ray, "--resume")
    assert status == 0, messages
    assert outcome(Path("there")) == outcome(Path("here"))
    weights = "**/weights.safetensors"
    for path in Path("here").glob(weights):
        other = Path("there") / path.relative_to("here")
        assert other.read_bytes() == path.read_bytes()


def test_the_classifier_searches_on_the_cluster(cluster: str, tmp_path: Path) -> None:
    portfolio = tmp_path / "three.toml"
    portfolio.write_text(PORTFOLIO)
    data = split(load_dataset("karate"), "stratified", 0)
    found = []
    for engine in ("local", "ray"):
        clf = AutoNodeClassifier(
            max_runs=3, portfolio=portfolio, device="cpu", workers=1, engine=engine
        )
        scores = [(entry.name, entry.validation) for entry in clf.fit(data).leaderboard_]
        found.append((scores, clf.predict_proba(data).tolist()))
    assert found[1] == found[0]


def test_unknown_engines_are_rejected() -> None:
    with pytest.raises(UserError, match="unknown engine 'slurm': choose local or ray"):
        AutoNodeClassifier(max_runs=1, engine="slurm").fit(GRAPH.data)
