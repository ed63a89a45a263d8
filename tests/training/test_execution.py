"""Batches of runs: what may be trained as one computation."""

import pytest

from nfgnn.training import Graph, RunConfig, RunSpec, batch_size, execution
from nfgnn.training.execution import make_batches


def spec(seed: int, graph: Graph, model: str = "GCN", timed: bool = False, **settings) -> RunSpec:
    config = RunConfig.resolve(model, settings, None, None, "none")
    return RunSpec(graph, "stratified", seed, config, timed)


@pytest.fixture
def karate() -> Graph:
    return Graph.named("karate")


def test_on_a_cpu_every_run_is_a_batch_of_its_own(karate: Graph) -> None:
    runs = [spec(seed, karate) for seed in range(3)]
    assert batch_size(runs[0], "cpu") == 1
    assert make_batches(runs, "cpu") == [(run,) for run in runs]


def test_runs_of_one_shape_share_a_batch(karate: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning rates and seeds may differ; models, graphs and other settings may not."""
    monkeypatch.setattr(execution, "batch_size", lambda *_: 3)
    a = [spec(seed, karate, lr=0.01 * (seed + 1)) for seed in range(4)]
    b = [spec(seed, karate, hidden_channels=8) for seed in range(2)]
    c = [spec(0, Graph.named("mixed"))]
    interleaved = [a[0], b[0], c[0], a[1], b[1], a[2], a[3]]
    batches = make_batches(interleaved, "cpu")
    assert batches == [(a[0], a[1], a[2]), (b[0], b[1]), (c[0],), (a[3],)]


def test_timed_runs_are_made_alone(karate: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "batch_size", lambda *_: 3)
    runs = [spec(seed, karate, timed=True) for seed in range(2)]
    assert make_batches(runs, "cpu") == [(runs[0],), (runs[1],)]


def test_graphs_in_memory_are_told_apart_by_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two graphs of the same name must not end up in one computation."""
    monkeypatch.setattr(execution, "batch_size", lambda *_: 3)
    first = Graph.of(Graph.named("mixed", num_nodes=50).data)
    second = Graph.of(Graph.named("mixed", num_nodes=60).data)
    assert first != second
    assert first == Graph.of(first.data)
    runs = [spec(0, first), spec(1, second)]
    assert len(make_batches(runs, "cpu")) == 2
