"""The search on the newer benchmarks: it selects by validation nodes and resumes."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nfgnn.data import load_dataset
from nfgnn.paper.search import modern
from nfgnn.paper.search.modern import (
    DRAW_SEEDS,
    FINALIST_SEEDS,
    LAST_SEEDS,
    ModernSearch,
    run_modern_search,
    run_modern_table,
)
from nfgnn.training import (
    Graph,
    Record,
    RecordResults,
    Records,
    RunConfig,
    UntilDeadline,
    execution,
)

QUICK = {"epochs": 3}


@pytest.fixture
def graph(tmp_path: Path) -> str:
    """A ring of two classes with ten splits. Few nodes are of class 1, so its metric is ROC-AUC."""
    n = 60
    rng = np.random.default_rng(0)
    y = (np.arange(n) % 5 == 0).astype(int)
    parts = np.stack([rng.permutation(np.arange(n) % 4) for _ in range(10)])
    masks = {"train_masks": parts < 2, "val_masks": parts == 2, "test_masks": parts == 3}
    path = tmp_path / "ring.npz"
    edges = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    x = rng.normal(size=(n, 4)) + y[:, None]
    np.savez(path, node_features=x, node_labels=y, edges=edges, **masks)
    return str(path)


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Records]:
    with Records(tmp_path / "records.sqlite") as records:
        yield records


def search(graph: str, records: Records, draws: int = 4, limit: float | None = None) -> list[str]:
    return run_modern_search(
        [graph], ["MLP"], draws, "cpu", records, limit, finalists=2, settings=QUICK
    )


def scores(records: Records) -> dict[str, float]:
    return {run.key: run.metrics["val_roc_auc"] for run in records.all()}


def test_validation_nodes_select_and_test_nodes_do_not(graph: str, records: Records) -> None:
    whole = ModernSearch([graph], ["MLP"], 4, records)
    (cell,) = whole.cells()
    assert cell.metric == "val_roc_auc"
    fingerprint = Graph.of(load_dataset(graph)).fingerprint
    candidates = whole.candidates(cell)
    # The test scores, the accuracy and the loss prefer draws 0 and 3.
    val = [0.70, 0.90, 0.80, 0.60]
    test = [0.99, 0.50, 0.55, 0.98]
    for candidate, score, other in zip(candidates, val, test):
        for seed in DRAW_SEEDS:
            records.add([run(fingerprint, candidate.short_config, seed, score, other)])
    assert whole.finalists(cell, 2) == [candidates[1], candidates[2]]
    # With more patience draw 2 is better on validation nodes, draw 1 on test nodes.
    for seed in FINALIST_SEEDS:
        assert whole.winner(cell) is None
        for candidate, score, other in ((candidates[1], 0.7, 0.99), (candidates[2], 0.8, 0.3)):
            records.add([run(fingerprint, candidate.final_config, seed, score, other)])
    winner = whole.winner(cell)
    assert winner is not None
    assert winner.candidate == candidates[2]
    assert winner.tried == 4
    assert winner.val_mean == pytest.approx(80)
    assert winner.test_mean == pytest.approx(30)


def run(fingerprint: str, config: RunConfig, seed: int, val: float, test: float) -> Record:
    metrics = {
        "val_roc_auc": val,
        "val_accuracy": test,
        "val_loss": 1 - test,
        "test_roc_auc": test,
        "test_accuracy": test,
        "seconds": 1.0,
        "epochs": 3,
    }
    settings = config.to_dict()
    return Record("ring", fingerprint, "public", seed, settings, metrics, "cpu", "2 cores")


def test_the_last_round_decides_on_a_small_graph(graph: str, records: Records) -> None:
    whole = ModernSearch([graph], ["MLP"], 3, records)
    (cell,) = whole.cells()
    fingerprint = Graph.of(load_dataset(graph)).fingerprint
    candidates = whole.candidates(cell)
    # Draw 0 is best on the first splits, draw 1 on all ten. Draw 2 did not get that far.
    for seed in LAST_SEEDS:
        records.add(
            [run(fingerprint, candidates[0].final_config, seed, 0.9 if seed < 3 else 0.5, 0.5)]
        )
        records.add([run(fingerprint, candidates[1].final_config, seed, 0.7, 0.5)])
    for seed in FINALIST_SEEDS:
        records.add([run(fingerprint, candidates[2].final_config, seed, 0.8, 0.5)])
    ranking = [winner.candidate for winner in whole.ranking(cell)]
    assert ranking == [candidates[1], candidates[0], candidates[2]]


def test_finalists_of_a_later_call_can_reach_the_last_round(graph: str, records: Records) -> None:
    whole = ModernSearch([graph], ["MLP"], 4, records)
    (cell,) = whole.cells()
    fingerprint = Graph.of(load_dataset(graph)).fingerprint
    configs = [candidate.final_config for candidate in whole.candidates(cell)]
    for config, score in zip(configs, (0.6, 0.7, 0.9, 0.8)):
        seeds = LAST_SEEDS if score < 0.75 else FINALIST_SEEDS
        records.add([run(fingerprint, config, seed, score, 0.5) for seed in seeds])
    last = [candidate.final_config for candidate in whole.last_finalists(cell)]
    assert last == [configs[2], configs[3]]
    # They have not been trained on all splits yet.
    winner = whole.winner(cell)
    assert winner is not None
    assert winner.candidate.final_config == configs[1]


def test_draws_are_in_half_precision_where_a_device_supports_it(
    graph: str, records: Records
) -> None:
    whole = ModernSearch([graph], ["MLP", "NFNet"], 1, records)
    for cell in whole.cells():
        (candidate,) = whole.candidates(cell)
        assert candidate.short_config.training.precision == "auto"
        assert candidate.final_config.training.precision == "auto"
        assert candidate.final_settings["precision"] == "auto"


def test_on_a_large_graph_the_better_half_is_trained_on_a_second_split(
    graph: str, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modern, "SMALL_GRAPH", 10)
    (line,) = search(graph, records)
    assert "4 draws" in line
    # Four draws on one split, two of them on another one, and two finalists on three.
    assert len(records.all()) == 4 + 2 + 2 * 3
    whole = ModernSearch([graph], ["MLP"], 4, records, QUICK)
    (cell,) = whole.cells()
    configs = [candidate.short_config for candidate in whole.candidates(cell)]
    first = [whole.runs(cell, config, [0])[0].metrics["val_roc_auc"] for config in configs]
    second = [bool(whole.runs(cell, config, [1])) for config in configs]
    assert second.count(True) == 2
    continued = [score for score, is_better in zip(first, second) if is_better]
    stopped = [score for score, is_better in zip(first, second) if not is_better]
    assert min(continued) >= max(stopped)


def test_finalists_are_trained_if_the_draws_take_too_long(
    graph: str, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The draws have a part of the time only, so that a search ends with a winner."""
    search(graph, records, draws=2)
    limits = []
    original = UntilDeadline.__init__

    def limited(self, seconds, max_batch=12):
        limits.append(seconds)
        # The draws of the second call have no time at all.
        original(self, seconds if len(limits) == 1 else 0.0, max_batch)

    monkeypatch.setattr(UntilDeadline, "__init__", limited)
    (line,) = search(graph, records, draws=4, limit=1000.0)
    assert line.endswith("not finished")
    assert limits[1] == pytest.approx(600, abs=60)
    whole = ModernSearch([graph], ["MLP"], 4, records, QUICK)
    winner = whole.winner(whole.cells()[0])
    assert winner is not None
    assert winner.tried == 2


def test_final_settings_replace_epochs_and_patience(graph: str, records: Records) -> None:
    whole = ModernSearch([graph], ["MLP"], 4, records)
    (cell,) = whole.cells()
    for candidate in whole.candidates(cell):
        drawn = candidate.short_config.settings()
        final = candidate.final_config.settings()
        assert (drawn["epochs"], drawn["patience"]) == (1600, 150)
        assert (final["epochs"], final["patience"]) == (2000, 500)
        assert final == {**drawn, "epochs": 2000, "patience": 500}
        assert candidate.final_settings.items() <= final.items()
    # The settings of a search hold for both.
    for candidate in ModernSearch([graph], ["MLP"], 4, records, QUICK).candidates(cell):
        assert candidate.short_config.training.epochs == 3
        assert candidate.final_config.training.epochs == 3
        assert candidate.final_config.training.patience == 500


def test_an_interrupted_search_resumes_to_the_same_end(
    graph: str, records: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (line,) = search(graph, records)
    assert "validation" in line
    assert "4 draws" in line
    # Four draws on two splits, and two finalists on three and then on all ten.
    assert len(records.all()) == 4 * 2 + 2 * 10
    with Records(tmp_path / "other.sqlite") as other:
        trained: list[int] = []
        original = execution.train_runs

        def counted(specs, *rest):
            trained.append(len(specs))
            return original(specs, *rest)

        monkeypatch.setattr(execution, "train_runs", counted)
        (line,) = search(graph, other, limit=0.0)
        assert line.endswith("not finished")
        assert trained == []
        _stop_after(monkeypatch, 5)
        (line,) = search(graph, other, limit=100.0)
        assert line.endswith("not finished")
        assert sum(trained) == 5
        monkeypatch.setattr(UntilDeadline, "is_over", property(lambda self: False))
        search(graph, other, limit=100.0)
        assert sum(trained) == 28
        search(graph, other)
        assert sum(trained) == 28
        assert scores(other) == scores(records)


def _stop_after(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let the time limit be reached after this many runs have been stored."""
    stored: list[object] = []
    original = RecordResults.store

    def store(self, *arguments):
        stored.append(arguments)
        return original(self, *arguments)

    monkeypatch.setattr(RecordResults, "store", store)
    is_over = property(lambda self: len(stored) >= count)
    monkeypatch.setattr(UntilDeadline, "is_over", is_over)


def test_draws_can_be_added(graph: str, records: Records) -> None:
    search(graph, records, draws=2)
    first = scores(records)
    search(graph, records, draws=4)
    later = scores(records)
    # Both draws are finalists.
    assert len(first) == 2 * 2 + 2 * 10
    assert first.items() <= later.items()
    whole = ModernSearch([graph], ["MLP"], 4, records, QUICK)
    winner = whole.winner(whole.cells()[0])
    assert winner is not None
    assert winner.tried == 4


def test_the_table_trains_the_winner_with_report_seeds(graph: str, records: Records) -> None:
    table = ([graph], ["MLP"], 2, "cpu", records)
    (line,) = run_modern_table(*table, settings=QUICK)
    assert "not selected" in line
    search(graph, records, draws=2)
    (line,) = run_modern_table(*table, settings=QUICK)
    whole = ModernSearch([graph], ["MLP"], 2, records, QUICK)
    winner = whole.winner(whole.cells()[0])
    reported = [run for run in records.all() if run.seed >= 1000]
    assert sorted(run.seed for run in reported) == list(range(1000, 1010))
    assert winner is not None
    assert all(run.config == winner.candidate.final_config.to_dict() for run in reported)
    mean = 100 * np.mean([run.metrics["test_roc_auc"] for run in reported])
    assert f"test {mean:.2f} %, 10 runs" in line
