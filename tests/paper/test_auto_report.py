"""The report of the evaluation of auto: numbers that can be computed by hand."""

from pathlib import Path
from typing import Any

import pytest

from nfgnn.errors import UserError
from nfgnn.paper.studies.auto_plan import AUTO, PRESET, TUNE
from nfgnn.paper.studies.auto_records import (
    TABLE,
    EvaluationRecord,
    newest_records,
    read_table,
    records_table,
)
from nfgnn.paper.studies.auto_report import (
    SINGLE,
    average_ranks,
    find_targets,
    graph_scores,
    write_auto_report,
)


def record(graph: str, method: str, test: float, seed: int = 1000, **more: Any) -> EvaluationRecord:
    values: dict[str, Any] = {
        "seconds_allowed": 300.0 if method in (AUTO, TUNE) else None,
        "seconds": 100.0,
        "details": {},
        "problem": "",
        "protocol": "full",
    }
    if method == AUTO:
        values["details"] = {"single": test - 0.01, "nodes": 100, "seconds_to_first": 4.0}
    return EvaluationRecord(
        graph=graph,
        seed=seed,
        method=method,
        metric="accuracy",
        test=test,
        validation=test,
        device="cpu",
        machine="a machine",
        cores=2,
        command="python benchmarks/auto_evaluation.py",
        **{**values, **more},
    )


RECORDS = [
    record("texas", AUTO, 0.80),
    record("texas", AUTO, 0.90, seed=1001),
    record("texas", TUNE, 0.70),
    record("texas", PRESET, 0.87),
    record("texas", "GCN", 0.60),
    record("texas", "MLP", 0.86),
    record("cora", AUTO, 0.88),
    record("cora", TUNE, 0.87),
    record("cora", PRESET, 0.88),
    record("cora", "GCN", 0.86),
    record("cora", "MLP", 0.70),
    record("cora", "LINK", 0.40),
    record("cora", AUTO, 0.87, seconds_allowed=30.0),
    record("texas", AUTO, 0.81, seconds_allowed=30.0),
]


def test_scores_are_means_over_seeds_of_one_budget() -> None:
    texas, cora = graph_scores(RECORDS, 300.0)
    assert texas.scores[AUTO] == pytest.approx(85)
    assert texas.scores[SINGLE] == pytest.approx(84)
    assert texas.seeds == 2
    assert texas.best_default == "MLP"
    assert cora.scores[AUTO] == pytest.approx(88)
    assert cora.difference(cora.best_default) == pytest.approx(2)


def test_a_method_without_result_ranks_last() -> None:
    ranks = average_ranks(graph_scores(RECORDS, 300.0))
    # texas: MLP, auto, tune, GCN, LINK; cora: auto, tune, GCN, MLP, LINK
    assert ranks == {AUTO: 1.5, "MLP": 2.5, TUNE: 2.5, "GCN": 3.5, "LINK": 5.0}
    assert average_ranks(graph_scores(RECORDS, 300.0), SINGLE)[SINGLE] == 1.75


def test_targets_are_computed() -> None:
    slow = record("cora", AUTO, 0.88, seed=1001, seconds=331.0)
    targets = find_targets(graph_scores(RECORDS, 300.0), [*RECORDS, slow], 300.0)
    assert [target.is_met for target in targets] == [True, False, False, False, True]
    assert targets[1].found == "1 of 2; not on texas -2.00"
    assert targets[2].found == "1 of 2; not on texas -1.00"


def test_files(tmp_path: Path) -> None:
    failed = record("cora", "GAT", 0.0, problem="needs too much memory")
    failed = EvaluationRecord(**{**vars(failed), "test": None})
    paths = write_auto_report([*RECORDS, failed], tmp_path, 300.0)
    assert [path.name for path in paths] == [
        "auto.md",
        "auto.csv",
        "auto_budget.svg",
        "auto_budget.png",
    ]
    text = paths[0].read_text()
    assert "| texas (accuracy) | 85.00 | 84.00 | 70.00 | 87.00 | 86.00 (MLP) |" in text
    assert "| 30 s | -1.50 |" not in text
    # texas 81 against 86, cora 87 against 86
    assert "| 30 s | -2.00 | -3.00 | -5.00 | +1.00 |" in text
    assert "cora cannot be trained with GAT" in text
    assert "Missing: actor has no result" in text
    assert len(paths[1].read_text().splitlines()) == 2 + len(RECORDS)
    with pytest.raises(UserError, match="no graph has results of auto"):
        write_auto_report(RECORDS, tmp_path, 60.0)


def test_a_budget_of_some_graphs_has_a_table_of_its_own(tmp_path: Path) -> None:
    longer = record("cora", AUTO, 0.90, seconds_allowed=1200.0)
    text = write_auto_report([*RECORDS, longer], tmp_path, 300.0)[0].read_text()
    assert "| 30 s | -2.00 | -3.00 | -5.00 | +1.00 |" in text
    _, _, second = text.partition("also searched with further budgets")
    # cora only: 87, 88 and 90 against 86
    assert "| 30 s | +1.00 | +0.00 | +1.00 |" in second
    assert "| 5 min | +2.00 | +1.00 | +2.00 |" in second
    assert "| 20 min | +4.00 | +3.00 | +4.00 |" in second


def test_a_table_keeps_the_records(tmp_path: Path) -> None:
    path = tmp_path / TABLE
    assert read_table(path) == []
    failed = record("cora", "GAT", 0.0, problem="there is not enough memory")
    path.write_text(records_table([*RECORDS, failed]))
    read = read_table(path)
    assert sorted(read, key=repr) == sorted([*RECORDS, failed], key=repr)
    assert records_table(read) == path.read_text()


def test_newer_records_replace_older_ones_of_the_same_task() -> None:
    newer = [record("texas", AUTO, 0.95), record("texas", AUTO, 0.5, protocol="semi")]
    found = newest_records(RECORDS, newer)
    assert len(found) == len(RECORDS) + 1
    assert RECORDS[0] not in found
    assert all(record in found for record in RECORDS[1:])
    assert all(record in found for record in newer)
