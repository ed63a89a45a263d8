"""What is missing is run, once; every item of the registry can be made."""

from pathlib import Path
from typing import Any

import pytest

from nfgnn.data import PROTOCOLS, REGISTRY
from nfgnn.errors import UserError
from nfgnn.paper.reproduce import collect, run_missing
from nfgnn.paper.table_cells import make_tables
from nfgnn.paper.table_plan import make_plan
from nfgnn.paper.table_registry import TABLES
from nfgnn.paper.table_writer import markdown, write_tables
from nfgnn.progress import Progress
from nfgnn.training import NodeClassifier, ProcessPool, RayTasks, Records, execution
from nfgnn.training.records import database, record

QUICK = {"epochs": 2}
QUIET = Progress("reproduce", quiet=True)


def made(folder: Path, *plans, root: Path | None = None, workers: int = 1) -> list[str]:
    executor = ProcessPool(workers, single_thread=True)
    with Records(folder / "records.sqlite") as records:
        return run_missing(plans, records, root, executor, QUIET, "cpu")


@pytest.mark.parametrize(
    "name",
    [
        n
        for n, s in TABLES.items()
        if s.metrics and (not s.columns or s.columns[0].protocol in PROTOCOLS)
    ],
)
def test_every_item_can_be_made(name: str, tmp_path: Path) -> None:
    models = None if name == "full" else [row.model for row in TABLES[name].rows][:3]
    graph = "karate" if name == "full" else "mixed"  # too small for `semi`
    plan = make_plan(name, [graph], models, runs=2, settings=QUICK)
    assert made(tmp_path, plan) == []
    with Records(tmp_path / "records.sqlite") as records:
        found = collect(plan, None, records)
    assert all(len(runs) == 2 for runs in found.values())
    tables = make_tables(plan, found, f"nfgnn reproduce {name}")
    assert [table.metric for table in tables] == [
        m for m in TABLES[name].metrics if m != "test_roc_auc"
    ]
    for path in write_tables(tables, tmp_path / "out", plan.file):
        assert path.read_text(encoding="utf-8")
    for row in plan.rows:
        assert f"| {row.label}" in markdown(tables)


def test_only_what_is_missing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[tuple[str, int]] = []

    def counted(specs, *rest):
        trained.extend((spec.config.model, spec.seed) for spec in specs)
        return original(specs, *rest)

    original = execution.train_runs
    monkeypatch.setattr(execution, "train_runs", counted)
    plan = make_plan("full", ["karate"], ["MLP"], runs=2, settings=QUICK)
    made(tmp_path, plan, plan)  # the same cell twice is one cell
    assert trained == [("MLP", 1000), ("MLP", 1001)]
    wider = make_plan("full", ["karate"], ["MLP", "GCN"], runs=3, settings=QUICK)
    made(tmp_path, wider)
    assert sorted(trained[2:]) == [("GCN", 1000), ("GCN", 1001), ("GCN", 1002), ("MLP", 1002)]
    made(tmp_path, wider, plan)
    assert len(trained) == 6


def test_seeds_that_are_one_computation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU: three at a time; a kill between two computations changes nothing."""
    monkeypatch.setattr(execution, "batch_size", lambda *_: 3)
    plan = make_plan("full", ["karate"], ["GCN"], runs=7, settings=QUICK)
    made(tmp_path / "whole", plan)

    def interrupted(specs, *rest):
        if specs[0].seed == 1003:
            raise KeyboardInterrupt
        return original(specs, *rest)

    original = execution.train_runs
    with monkeypatch.context() as patch:
        patch.setattr(execution, "train_runs", interrupted)
        with pytest.raises(KeyboardInterrupt):
            made(tmp_path / "struck", plan)
    made(tmp_path / "struck", plan)
    results = []
    for folder in ("whole", "struck"):
        with Records(tmp_path / folder / "records.sqlite") as records:
            results.append(
                [
                    (r.seed, {k: v for k, v in r.metrics.items() if k != "seconds"})
                    for r in records.all()
                ]
            )
    assert results[0] == results[1]
    assert [metrics["runs_together"] for _, metrics in results[0]] == [3, 3, 3, 3, 3, 3, 1]


def test_processes_make_the_same_records(tmp_path: Path) -> None:
    plan = make_plan("full", ["karate"], ["MLP", "GCN"], runs=2, settings=QUICK)
    results = []
    for folder, workers in (("one", 1), ("two", 2)):
        made(tmp_path / folder, plan, workers=workers)
        with Records(tmp_path / folder / "records.sqlite") as records:
            runs = records.all()
        results.append(
            [(r.key, {k: v for k, v in r.metrics.items() if k != "seconds"}) for r in runs]
        )
    assert len(results[0]) == 4
    assert results[0] == results[1]


def test_graphs_that_are_not_here_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NFGNN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    plan = make_plan(
        "large", ["pokec", "ogbn-papers100M", "karate"], ["GCN"], runs=1, settings=QUICK
    )
    notes = made(tmp_path, plan)
    assert len(notes) == 2
    assert "nfgnn datasets pokec" in notes[0]
    assert "nfgnn precompute ogbn-papers100m" in notes[1]
    with Records(tmp_path / "records.sqlite") as records:
        found = collect(plan, None, records)
        text = markdown(make_tables(plan, found, "c", notes))
    assert [len(runs) for runs in found.values()] == [0, 0, 1]
    assert "Missing: pokec" in text


def test_a_graph_that_is_gone_is_known_by_its_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan("full", ["karate"], ["MLP"], runs=2, settings=QUICK)
    made(tmp_path, plan)
    monkeypatch.setattr("nfgnn.paper.find_graph.BUILT_IN", ())
    monkeypatch.setitem(
        REGISTRY, "karate", REGISTRY["ogbn-products"]
    )  # far too large to be fetched
    with Records(tmp_path / "records.sqlite") as records:
        assert [len(runs) for runs in collect(plan, None, records).values()] == [2]
    assert made(tmp_path, plan) == []


def test_a_model_that_cannot_be_trained_does_not_stop_the_others(tmp_path: Path) -> None:
    plan = make_plan(
        "full", ["karate"], ["MLP"], runs=1, settings={**QUICK, "lr": 1e38, "weight_decay": 1e38}
    )
    (note,) = made(tmp_path, plan, make_plan("full", ["karate"], ["GCN"], runs=1, settings=QUICK))
    assert "MLP on karate (full), seed 1000: the validation loss is not finite" in note
    with Records(tmp_path / "records.sqlite") as records:
        assert [r.model for r in records.all()] == ["GCN"]


def test_a_lack_of_memory_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*arguments, **options):
        raise RuntimeError(
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"
        )

    monkeypatch.setattr(NodeClassifier, "fit", too_large)
    (note,) = made(tmp_path, make_plan("full", ["karate"], ["MLP"], runs=1, settings=QUICK))
    assert note == "MLP on karate (full), seed 1000: there is not enough memory"


def test_tables_from_records_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from nfgnn.cli import app

    made(tmp_path, make_plan("full", ["karate"], ["MLP"], runs=2))
    words = [
        "reproduce",
        "full",
        "--datasets",
        "karate",
        "--models",
        "MLP,SGC",
        "--runs",
        "3",
        "--out",
        str(tmp_path),
    ]
    app([*words, "--from-records"], standalone_mode=False)
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert any(line.startswith("| MLP |") and "×2" in line.replace(" ", "") for line in rows), rows
    with Records(tmp_path / "records.sqlite") as records:
        assert len(records.all()) == 2  # nothing was run


@pytest.mark.parametrize("item", ["full", "time"])
def test_a_graph_that_is_not_here_costs_its_own_column_alone(item: str, tmp_path: Path) -> None:
    plan = make_plan(item, ["pokec", "mixed"], ["GCN"], runs=1, settings=QUICK)
    (note,) = made(tmp_path, plan)
    assert "pokec is not available: `nfgnn datasets pokec` downloads it" in note
    with Records(tmp_path / "records.sqlite") as records:
        found = collect(plan, None, records)
    assert {column.dataset: len(runs) for (_, column), runs in found.items()} == {
        "pokec": 0,
        "mixed": 1,
    }


def test_a_run_for_its_time_is_made_on_every_machine_and_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same run for its accuracy, or on another machine, does not stand in for it."""
    accuracy = make_plan("full", ["mixed"], ["GCN"], runs=2, settings=QUICK)
    timed = make_plan("time", ["mixed"], ["GCN"], runs=2, preset="best", settings=QUICK)
    assert made(tmp_path, accuracy, timed) == []
    made(tmp_path, timed)  # nothing is missing
    for module in (database, record):
        monkeypatch.setattr(module, "machine_name", lambda: "another processor, 8 cores")
    epochs = []

    def counted(classifier: NodeClassifier, *arguments: Any) -> Any:
        assert classifier._config is not None
        epochs.append(classifier._config.training.epochs)
        return fit(classifier, *arguments)

    fit = NodeClassifier.fit
    monkeypatch.setattr(NodeClassifier, "fit", counted)
    made(tmp_path, timed)
    # A few epochs come first, so that kernels are compiled before the clock starts.
    assert epochs == 2 * [3, QUICK["epochs"]]
    with Records(tmp_path / "records.sqlite") as records:
        recorded = records.all()
        (runs,) = collect(timed, None, records).values()
        (plain,) = collect(accuracy, None, records).values()
    assert {run.protocol for run in recorded} == {"full"}
    assert sorted((run.timed, run.machine) for run in recorded)[0][0] is False
    assert len({(run.timed, run.machine) for run in recorded}) == 3
    assert len(recorded) == 6
    assert [run.seed for run in runs] == [1000, 1000, 1001, 1001]
    assert {run.machine.partition(",")[0] for run in runs} >= {"another processor"}
    assert not any(run.timed for run in plain)
    assert "| GCN, cpu (another processor) |" in markdown(
        make_tables(timed, {next(iter(timed.configs)): runs}, "c")
    )
    for settings, known in (
        ({"lr": 0.02}, 4),
        ({"hidden_channels": 8}, 0),
    ):  # the latter takes another time
        other = make_plan(
            "time", ["mixed"], ["GCN"], runs=2, preset="best", settings={**QUICK, **settings}
        )
        with Records(tmp_path / "records.sqlite") as records:
            (alike,) = collect(other, None, records).values()
        assert len(alike) == known
    with (
        Records(tmp_path / "other.sqlite") as records,
        pytest.raises(UserError, match="leave out --engine ray"),
    ):
        run_missing([timed], records, None, RayTasks(None, QUIET.say), QUIET, "cpu")
