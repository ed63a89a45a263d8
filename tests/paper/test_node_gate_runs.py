"""The runs of the study of node gates: selection, resuming, time limit."""

import itertools
import re
import runpy
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from helpers.node_gate_records import add_search, fingerprint

from nfgnn.analysis import local_homophily
from nfgnn.errors import UserError
from nfgnn.paper.studies import node_gate_plan as plan
from nfgnn.paper.studies import node_gate_runs
from nfgnn.paper.studies.node_gate_plan import GRAPHS, StudyGraph
from nfgnn.paper.studies.node_gate_runs import (
    ReportResults,
    finalists,
    interval_names,
    run_node_gate_study,
    select_winners,
)
from nfgnn.training import Failure, Graph, Records, RunSpec, UntilDeadline, open_records
from nfgnn.training.execution import Batch, OnBatchEpoch, Work
from nfgnn.training.history import OnEpoch
from nfgnn.training.run import train_runs

REPOSITORY = Path(__file__).parents[2]


class SmallGraph(StudyGraph):
    """Generated graphs with few nodes."""

    def graph(self, seed: int, root: Path | None) -> Graph:
        return Graph.named("mixed", seed=seed, num_nodes=80, crossing=self.crossing)


SMALL = SmallGraph("small", plan.GENERATED, "full", crossing=0.1)


class FourTrainings(UntilDeadline):
    """The time is over in the fourth training."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.started = 0

    @property
    def is_over(self) -> bool:
        return self.started > 3

    def run(
        self, batches: Sequence[Batch], work: Work, on_epoch: OnBatchEpoch
    ) -> Iterator[tuple[Batch, list[Any | Failure]]]:
        def counted(specs: Sequence[RunSpec], on_epoch: OnEpoch | None = None) -> list[Any]:
            self.started += 1
            return work(specs, on_epoch)

        return super().run(batches, cast(Work, counted), on_epoch)


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Records]:
    with Records(tmp_path / "records.sqlite") as opened:
        yield opened


@pytest.fixture
def _made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find graphs of hand-made records."""
    monkeypatch.setattr(StudyGraph, "fingerprint", fingerprint)


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shrink the study to a few short runs."""
    monkeypatch.setattr(plan, "GRAPHS", {"small": SMALL})
    monkeypatch.setattr(plan, "LAYERS", (1, 2))
    monkeypatch.setattr(plan, "DRAWS_PER_STRUCTURE", 1)
    monkeypatch.setattr(plan, "FINALISTS", 1)
    monkeypatch.setattr(plan, "FEW_SEEDS", range(1))
    monkeypatch.setattr(plan, "SEARCH_SEEDS", range(2))
    monkeypatch.setattr(plan, "REPORT_SEEDS", range(1000, 1002))
    short = {"epochs": 3, "patience": 2, "select": "metric"}
    monkeypatch.setattr(plan, "TRAINING", short)
    monkeypatch.setattr(plan, "gates", lambda: ("term",))


@pytest.mark.usefixtures("_made_up")
def test_only_validation_scores_select(records: Records) -> None:
    graph = GRAPHS["texas"]

    def validation(network: str, draw: int, seed: int) -> float:
        # Draw 3 leads on the first seeds, draw 7 on all of them.
        lead = {3: 0.4 if seed < 3 else 0.0, 7: 0.3}.get(draw, 0.0)
        return 0.1 + lead + 0.001 * draw

    add_search(records, graph, validation)
    assert [draw for draw, _ in finalists(graph, "term", records, None)] == [3, 7]
    winners = select_winners(graph, records)
    assert {winner.draw for winner in winners.values()} == {7}
    assert winners.keys() == set(plan.networks())
    assert winners["term"].validation == pytest.approx(0.407)
    assert winners["term"].config.hyper["gate"] == "term"


@pytest.mark.usefixtures("_made_up")
def test_equal_scores_are_decided_by_the_number_of_the_draw(records: Records) -> None:
    graph = GRAPHS["texas"]
    add_search(records, graph, lambda network, draw, seed: 0.5)
    assert {winner.draw for winner in select_winners(graph, records).values()} == {0}


@pytest.mark.usefixtures("_made_up")
def test_no_winner_before_the_search_of_a_network_is_complete(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = GRAPHS["texas"]
    seeds = plan.SEARCH_SEEDS
    monkeypatch.setattr(plan, "SEARCH_SEEDS", seeds[:-1])
    add_search(records, graph, lambda network, draw, seed: 0.5)
    assert select_winners(graph, records).keys() == set(plan.networks())
    monkeypatch.setattr(plan, "SEARCH_SEEDS", seeds)
    assert select_winners(graph, records) == {}


def test_gates_can_be_chosen() -> None:
    assert plan.networks(["cluster"]) == ("none", "cluster", "MLP")
    with pytest.raises(UserError, match="unknown gate of NFNet 'clusters'"):
        plan.networks(["clusters"])


def content(records: Records) -> list[tuple[Any, ...]]:
    """Everything of the records but times."""
    return [
        (run.protocol, run.seed, str(run.config), {**run.metrics, "seconds": 0})
        for run in records.all()
    ]


@pytest.mark.usefixtures("_small")
def test_an_interrupted_study_resumes_to_the_same_records(
    records: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_node_gate_study(None, "cpu", records) == []
    runs = records.all()
    # Search: 3 networks, 2 draws, 1 seed, and the finalist on another seed. Report: 4 networks.
    assert len([run for run in runs if run.seed < 1000]) == 3 * (2 + 1)
    assert len([run for run in runs if run.seed >= 1000]) == 4 * 2
    assert not any("test_accuracy" in run.metrics for run in runs if run.seed < 1000)

    with Records(tmp_path / "again.sqlite") as again:
        assert len(run_node_gate_study(None, "cpu", again, time_limit=0)) == 1
        assert again.all() == []
        # Every call ends in its fourth training at the latest.
        monkeypatch.setattr(node_gate_runs, "UntilDeadline", FourTrainings)
        counts = [0]
        while run_node_gate_study(None, "cpu", again, time_limit=1):
            counts.append(len(again.all()))
        assert counts == [0, 3, 6, 9, 12, 15]
        assert content(again) == content(records)


@pytest.mark.usefixtures("_small")
def test_a_shortened_search_has_no_runs_of_finalists(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "GRAPHS", {"small": replace(SMALL, shortened=True)})
    assert run_node_gate_study(None, "cpu", records) == []
    seeds = [run.seed for run in records.all()]
    assert sorted(set(seeds)) == [0, 1000]
    assert seeds.count(0) == 3 * 2
    assert seeds.count(1000) == 4


@pytest.mark.usefixtures("_small")
def test_an_interrupted_report_has_the_same_seeds_of_all_networks(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_gate_runs, "UntilDeadline", FourTrainings)
    while not any(run.seed >= 1000 for run in records.all()):
        run_node_gate_study(None, "cpu", records, time_limit=1)
    seeds = [run.seed for run in records.all() if run.seed >= 1000]
    assert set(seeds) == {1000}


@pytest.mark.usefixtures("_small")
def test_report_runs_count_test_nodes_by_local_homophily() -> None:
    config = plan.config(plan.NONE, plan.draws(SMALL)[0][0])
    spec = RunSpec(SMALL.graph(1000, None), "full", 1000, config)
    [result] = train_runs([spec], "cpu")
    metrics = ReportResults(None).pack(result).metrics
    data = result.data
    h = local_homophily(data.edge_index, data.y)
    correct = result.classifier.predict(data) == data.y
    for interval, (low, high) in enumerate(itertools.pairwise([0, 0.2, 0.4, 0.6, 0.8, 1.01])):
        nodes = data.test_mask & (h > low - 1e-9) & (h < high - 1e-9)
        counted, hits = interval_names(interval)
        assert metrics[counted] == int(nodes.sum())
        assert metrics[hits] == int((nodes & correct).sum())
    assert metrics["train_nodes"] == int(data.train_mask.sum())
    assert metrics["test_nodes"] == int(data.test_mask.sum())


@pytest.mark.usefixtures("_small")
def test_the_script_for_the_gpu_makes_the_same_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = str(REPOSITORY / "benchmarks" / "node_gates_device.py")
    out = tmp_path / "results"
    arguments = ["small", "--out", str(out), "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", [script, *arguments, "--time-limit", "0"])
    runpy.run_path(script, run_name="__main__")
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    runpy.run_path(script, run_name="__main__")
    (out / "node_gates.sqlite").unlink()
    with open_records(out / "node_gates.sqlite") as again:
        assert len(again.all()) == 17
        assert run_node_gate_study(["small"], "cpu", again, time_limit=0) == []


def test_the_study_needs_no_typer() -> None:
    """The GPU machine may have a version of typer that the command line cannot use."""
    files = [path for path in (REPOSITORY / "nfgnn").rglob("*.py") if "cli" not in path.parts]
    using = [path.name for path in files if re.search(r"^\s*(import|from) typer", path.read_text())]
    assert using == []
