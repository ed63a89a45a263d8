"""The search: its grids fit the models, and it selects by validation and is repeatable."""

import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from nfgnn import load_dataset
from nfgnn.errors import UserError
from nfgnn.nn.models import MODELS
from nfgnn.paper.search import tune
from nfgnn.paper.search.tune import BATCH, Outcome, Search, Trial, preset_table, run_search
from nfgnn.progress import Progress
from nfgnn.training import METRICS, Record, Records, RunConfig, execution
from nfgnn.training.search_spaces import NUMERIC, PAPER_GRID, search_space


def searched(folder: Path, **changes) -> tuple[Search, Outcome, list[Record]]:
    fixed = {"epochs": 3, "hidden_channels": 4, **changes.pop("fixed", {})}
    search = Search(
        load_dataset("karate"),
        "NFGNN",
        "stratified",
        seeds=(0, 1),
        fixed=fixed,
        device="cpu",
        **changes,
    )
    with Records(folder / "t.sqlite") as records:
        outcome = run_search(search, records, Progress("tune", quiet=True))
        return search, outcome, records.all()


@pytest.mark.parametrize("kind", ["best", "paper"])
@pytest.mark.parametrize("model", MODELS)
def test_every_value_of_every_grid_is_one_the_model_takes(model: str, kind: str) -> None:
    space = search_space(model, kind, {})
    assert {"lr", "weight_decay"} <= set(space)
    for name, values in space.items():
        assert len(set(values)) == len(values) > 1
        for value in values:
            # A gate that mixes filters needs several.
            rank = {"rank": 3} if name == "gate" and "rank" in space else {}
            config = RunConfig.resolve(model, {name: value, **rank}, None, None, "none")
            assert config.settings()[name] == value
            config.build(3, 2, 5)
    assert "lr" not in search_space(model, kind, {"lr": 0.1})


def test_shapes_that_cannot_be_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = {"K": (-1, 1), "lr": (0.01, 0.02)}  # a negative degree is refused
    monkeypatch.setattr(tune, "search_space", lambda *_: space)
    _, outcome, _ = searched(tmp_path, trials=3 * BATCH)
    assert {trial.settings["K"] for trial in outcome.trials[1:]} == {1}
    assert len(outcome.trials) == 3 * BATCH + 1


def test_the_papers_grid() -> None:
    space = search_space("NFGNN", "paper", {})
    assert space == PAPER_GRID
    assert space["lr"] == (0.01, 0.05)
    assert space["filter_lr"] == (0.001, 0.005, 0.01)
    assert space["filter_dropout"] == (0, 0.1, 0.2, 0.5, 0.7, 0.8, 0.9)
    assert space["hidden_channels"] == (16, 32, 64)
    assert space["weight_decay"] == (0.0001, 0.0005, 0.001)
    assert "filter_lr" not in search_space("APPNP", "best", {})  # its filter learns nothing
    assert "filter_lr" not in search_space("MLP", "best", {})


def test_batches_share_a_shape_and_the_best_is_the_best(tmp_path: Path) -> None:
    search, outcome, runs = searched(tmp_path, trials=BATCH + 3)
    assert len(outcome.trials) == BATCH + 4
    for batch in (outcome.trials[1 : BATCH + 1], outcome.trials[BATCH + 1 :]):
        shapes = [{k: v for k, v in trial.settings.items() if k not in NUMERIC} for trial in batch]
        assert all(shape == shapes[0] for shape in shapes)
        assert len({str(trial.settings) for trial in batch}) > 1
    for trial in outcome.trials:  # by hand, from the records
        config = search.config(trial.settings).to_dict()
        values = [r.metrics["val_accuracy"] for r in runs if dict(r.config) == config]
        assert len(values) == 2
        assert trial.val_accuracy == pytest.approx(sum(values) / 2)
    assert outcome.best.val_accuracy == max(trial.val_accuracy for trial in outcome.trials)
    assert {
        name for r in runs for name in r.metrics if "test" in name
    } == set()  # test nodes were never scored


def test_ties_go_to_the_lower_loss_then_to_the_earlier() -> None:
    trials = [
        Trial({"K": i}, 0.5, loss, score)
        for i, (score, loss) in enumerate([(0.8, 1), (0.9, 2), (0.9, 1), (0.9, 1)])
    ]
    assert Outcome(trials).best is trials[2]
    assert Outcome(trials, METRICS["log_loss"]).best is trials[0]


@pytest.mark.parametrize("name", ["roc_auc", "log_loss"])
def test_the_search_optimises_the_metric(tmp_path: Path, name: str) -> None:
    """Every trial has the mean metric of its runs, and the best one is best in its direction."""
    metric = METRICS[name]
    _, outcome, runs = searched(tmp_path, trials=3, fixed={"metric": name, "K": 2})
    assert outcome.metric == metric
    for run in runs:
        assert run.config["metric"] == name
        assert run.config["select"] == "metric"
    scores = [trial.val_metric for trial in outcome.trials]
    recorded = {round(run.metrics[f"val_{name}"], 6) for run in runs}
    assert all(min(recorded) <= score <= max(recorded) for score in scores)
    best = max(scores) if metric.greater_is_better else min(scores)
    assert outcome.best.val_metric == best


def test_going_on_is_the_same_as_never_having_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, whole, _ = searched(tmp_path / "whole", trials=10)
    with monkeypatch.context() as patch:
        made: list[int] = []

        def train_until_interrupted(*arguments, **options) -> list[Record]:
            made.append(1)
            if len(made) > 13:
                raise KeyboardInterrupt
            return trained(*arguments, **options)

        trained = execution.train_runs
        patch.setattr(execution, "train_runs", train_until_interrupted)
        with pytest.raises(KeyboardInterrupt):
            searched(tmp_path / "struck", trials=10)
    _, resumed, _ = searched(tmp_path / "struck", trials=10)
    assert resumed == whole
    _, shorter, _ = searched(tmp_path / "whole", trials=9)  # and a shorter search is its beginning
    assert shorter.trials[: BATCH + 1] == whole.trials[: BATCH + 1]


def test_a_batch_is_one_computation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU: settings that differ in numbers and seeds are trained together."""
    monkeypatch.setattr(execution, "batch_size", lambda *_: 100)
    _, outcome, runs = searched(tmp_path, trials=BATCH)
    assert len(runs) == 2 * (BATCH + 1)
    together = [r.metrics["runs_together"] for r in runs]
    assert sorted(together) == [2, 2] + [2 * BATCH] * 2 * BATCH
    assert len(outcome.trials) == BATCH + 1


def test_the_table_is_toml_that_resolves_to_the_best(tmp_path: Path) -> None:
    search, outcome, _ = searched(tmp_path, trials=2, kind="paper", fixed={"lr": 0.03})
    text = preset_table(search, outcome, "nfgnn tune …")
    values = tomllib.loads(text)["paper"]["full"]["karate"]  # stratified uses the tables of full
    assert values["lr"] == 0.03
    assert RunConfig.resolve("NFGNN", values, None, None, "paper") == search.config(
        outcome.best.settings
    )


def test_a_setting_that_diverges_scores_nothing(tmp_path: Path) -> None:
    _, outcome, runs = searched(tmp_path, trials=1, fixed={"lr": 1e38, "weight_decay": 1e38})
    assert {trial.val_accuracy for trial in outcome.trials} == {0.0}
    assert {r.metrics["epochs"] for r in runs} == {0}


@pytest.mark.parametrize("metric", ["val_accuracy", "val_loss"])
def test_a_record_without_its_metric_names_the_database(tmp_path: Path, metric: str) -> None:
    searched(tmp_path, trials=0)
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as connection:
        connection.execute("UPDATE runs SET metrics = json_remove(metrics, ?)", [f"$.{metric}"])
        connection.commit()
    with pytest.raises(UserError, match=rf"t\.sqlite: .* has no {metric}.* with --storage"):
        searched(tmp_path, trials=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trials": 1, "kind": "good"}, "choose best or paper"),
        ({"trials": 1, "fixed": {"colour": "red"}}, "no setting 'colour'"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, changes: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        searched(tmp_path, **changes)


def test_reported_seeds_are_not_searched_on() -> None:
    with pytest.raises(UserError, match="seeds from 0 to 999"):
        Search(load_dataset("karate"), seeds=[1000]).check()
