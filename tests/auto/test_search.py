"""The search for the best configurations of a graph."""

import shutil
import signal
import sys
import time
from pathlib import Path

import pytest
import torch
from helpers.forked_python import start_python

from nfgnn import NodeClassifier
from nfgnn.auto.auto import AutoTask, search_graph, suitable_entries
from nfgnn.auto.budget import Budget
from nfgnn.auto.portfolio import PortfolioEntry, load_portfolio
from nfgnn.auto.result import FEATURES, LINKS
from nfgnn.auto.search import Search, SearchOutcome
from nfgnn.auto.trained_entries import Executors
from nfgnn.auto.validation import validation_splits
from nfgnn.data import load_dataset, split
from nfgnn.errors import UserError
from nfgnn.progress import Progress
from nfgnn.training import METRICS, Graph, InProcess, TimeLimit

PORTFOLIO = """
[[configuration]]
model = "GCN"
epochs = 8
[[configuration]]
model = "MLP"
epochs = 8
[[configuration]]
model = "LINK"
epochs = 8
[[configuration]]
model = "GCN"
lr = 1e30
epochs = 3
"""


def search(folder: Path, budget: Budget, configurations: str = PORTFOLIO) -> SearchOutcome:
    """Search on the karate club, which has 7 validation nodes and therefore five splits."""
    folder.mkdir(parents=True, exist_ok=True)
    portfolio = folder.parent / "portfolio.toml"
    portfolio.write_text(configurations)
    task = AutoTask(
        Graph.of(load_dataset("karate")), "stratified", device="cpu", workers=1, portfolio=portfolio
    )
    return search_graph(task, budget, folder, Progress(quiet=True))


def facts(outcome: SearchOutcome) -> list[object]:
    """Return everything that a leaderboard and an ensemble depend on."""
    return [
        (
            candidate.config.to_dict(),
            candidate.family,
            candidate.origin,
            [rows.tolist() for rows in candidate.probabilities],
        )
        for candidate in outcome.candidates
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SearchOutcome]:
    """A search of 30 runs that was not interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "work"
    return folder, search(folder, Budget(None, 30))


def test_the_number_of_runs_is_kept(whole: tuple[Path, SearchOutcome]) -> None:
    folder, outcome = whole
    assert outcome.runs <= 30
    assert outcome.runs == len(list((folder / "runs").iterdir()))
    # What is left would not train another configuration on all five splits.
    assert outcome.runs > 25


def test_the_best_of_every_family_are_compared_on_all_splits(
    whole: tuple[Path, SearchOutcome],
) -> None:
    _, outcome = whole
    complete = [candidate for candidate in outcome.candidates if candidate.splits == 5]
    assert {FEATURES, LINKS} <= {candidate.family for candidate in complete}
    assert complete == list(outcome.candidates[: len(complete)])
    scores = [
        outcome.scored.score(outcome.metric, candidate.probabilities) for candidate in complete
    ]
    assert scores == sorted(scores, reverse=True)
    assert {candidate.origin for candidate in outcome.candidates} == {"portfolio", "search"}


def test_candidates_predict_the_validation_nodes(whole: tuple[Path, SearchOutcome]) -> None:
    _, outcome = whole
    best = outcome.candidates[0]
    predicted = NodeClassifier.load(best.folder, "cpu").predict_proba(load_dataset("karate"))
    torch.testing.assert_close(predicted[outcome.scored.nodes[0]], best.probabilities[0])


def test_a_training_that_diverges_is_reported(whole: tuple[Path, SearchOutcome]) -> None:
    _, outcome = whole
    assert all(candidate.config.training.lr < 1 for candidate in outcome.candidates)
    assert any("GCN" in note for note in outcome.notes)


def test_lost_runs_are_trained_again_to_the_same_result(
    whole: tuple[Path, SearchOutcome], tmp_path: Path
) -> None:
    folder, outcome = whole
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    runs = sorted((copy / "runs").iterdir())
    for run in runs[::3]:
        shutil.rmtree(run)
    weights = next(run / "probabilities.npy" for run in runs[1::3])
    weights.write_bytes(weights.read_bytes()[:-1])
    assert facts(search(copy, Budget(None, 30))) == facts(outcome)


def test_a_killed_search_continues_to_the_same_result(
    whole: tuple[Path, SearchOutcome], tmp_path: Path
) -> None:
    folder = tmp_path / "killed"
    process = start_python(__file__, str(folder))
    while process.is_alive() and len(list(folder.glob("runs/*/run.json"))) < 4:
        time.sleep(0.01)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert facts(search(folder, Budget(None, 30))) == facts(whole[1])


def test_a_time_limit_ends_the_search(tmp_path: Path) -> None:
    budget = Budget(2.0, None)
    outcome = search(tmp_path / "timed", budget)
    assert outcome.candidates
    assert outcome.seconds_to_first > 0
    assert len(list((tmp_path / "timed/runs").iterdir())) == outcome.runs


def test_a_training_that_is_cut_is_a_run_with_fewer_epochs(tmp_path: Path) -> None:
    long = '[[configuration]]\nmodel = "GCN"\nepochs = 100000\npatience = 100000\n'
    outcome = search(tmp_path / "cut", Budget(2.0, None), long)
    best = outcome.candidates[-1]
    epochs = best.config.training.epochs
    assert 0 < epochs < 100000
    data = split(load_dataset("karate"), "stratified", 0)
    again = NodeClassifier.from_config(best.config, 0, "cpu").fit(data)
    assert again.history_.epochs == epochs
    expected = again.predict_proba(data)[data.val_mask]
    torch.testing.assert_close(best.probabilities[0], expected)


ENDLESS = """
[[configuration]]
model = "GCN"
epochs = 5
[[configuration]]
model = "NFNet"
hidden_channels = 128
num_layers = 2
epochs = 100000
patience = 100000
"""


def test_cheaper_forms_take_the_place_of_what_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nfgnn.auto.search.COSTLY_SHARE", 0.0)
    work = tmp_path / "work"
    work.mkdir()
    first = unfinished_search(tmp_path, work)
    for entry in first.entries[:2]:
        first.trained.train([(entry.config, 0)], longest=0.2)
    first._try_cheaper_forms(0.2)
    settings = [entry.config.settings() for entry in first.entries]
    assert [s.get("num_layers") for s in settings[1:]] == [2, 2, 4]
    assert [s["hidden_channels"] for s in settings[1:]] == [128, 64, 64]
    assert first.entries[1] not in first._promising()
    assert all(first.trained.record(entry.config, 0) for entry in first.entries)
    # A resumed search repeats the decision, whatever its clock says.
    monkeypatch.setattr("nfgnn.auto.search.COSTLY_SHARE", 1.0)
    again = unfinished_search(tmp_path, work)
    again._try_cheaper_forms(0.2)
    assert again.entries == first.entries


def unfinished_search(folder: Path, work: Path) -> Search:
    """Return a search with an endless training, before its first step."""
    (folder / "endless.toml").write_text(ENDLESS)
    graph = Graph.of(load_dataset("karate"))
    metric = METRICS["accuracy"]
    limit = TimeLimit()
    executor = InProcess(single_thread=True, limit=limit)
    search = Search(
        validation_splits(graph, "stratified", 0, metric),
        metric,
        suitable_entries(load_portfolio(folder / "endless.toml"), graph, metric),
        Budget(1000.0, None),
        work,
        Executors(executor, executor, limit),
        Progress(quiet=True),
        0,
        "cpu",
    )
    search.trained.runs.open()
    return search


def test_graphs_without_features_or_edges_leave_out_a_family() -> None:
    data = load_dataset("karate")
    portfolio = load_portfolio()
    featureless = load_dataset(data.clone())
    del featureless.x
    kept = _families(portfolio, Graph.of(load_dataset(featureless)))
    assert FEATURES not in kept
    assert LINKS in kept
    isolated = data.clone()
    isolated.edge_index = data.edge_index[:, :0]
    isolated.x = torch.eye(data.num_nodes)
    kept = _families(portfolio, Graph.of(load_dataset(isolated)))
    assert FEATURES in kept
    assert LINKS not in kept


def _families(portfolio: list[PortfolioEntry], graph: Graph) -> set[str]:
    return {entry.family for entry in suitable_entries(portfolio, graph, METRICS["accuracy"])}


def test_the_metric_of_the_graph_selects_epochs() -> None:
    graph = Graph.of(load_dataset("karate"))
    for entry in suitable_entries(load_portfolio(), graph, METRICS["roc_auc"]):
        assert entry.config.training.metric == "roc_auc"
        assert entry.config.training.select == "metric"


def test_models_without_enough_memory_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nfgnn.auto.run_memory.available_memory", lambda: 16 * 34 * 64 * 3)
    large = PORTFOLIO + '[[configuration]]\nmodel = "PolyGNN"\nK = 9\nepochs = 2\n'
    outcome = search(tmp_path / "large", Budget(None, 10), large)
    assert outcome.notes[-1].startswith("PolyGNN: needs about")
    assert "PolyGNN" not in [candidate.config.model for candidate in outcome.candidates]


def test_a_search_without_a_model_says_why(tmp_path: Path) -> None:
    text = '[[configuration]]\nmodel = "GCN"\nlr = 1e30\nepochs = 3\n'
    with pytest.raises(UserError, match=r"no model could be trained: GCN: .*reduce the learning"):
        search(tmp_path / "bad", Budget(None, 1), text)


if __name__ == "__main__":
    search(Path(sys.argv[1]), Budget(None, 30))
