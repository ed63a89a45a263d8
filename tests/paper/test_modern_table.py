"""The table of today's benchmarks: what it shows, and ranks of hand-made records."""

import csv
import io

import pytest
from helpers.table_records import make_record

from nfgnn.paper import table_plan
from nfgnn.paper.reproduce import Found
from nfgnn.paper.statistics import holm
from nfgnn.paper.table_cells import Table, make_tables
from nfgnn.paper.table_plan import Plan, make_plan
from nfgnn.paper.table_registry import TABLES, published_rows
from nfgnn.paper.table_writer import latex, markdown, values_csv

GRAPHS = ["minesweeper", "tolokers", "chameleon-filtered", "pubmed"]
ROWS = ["MLP", "GCN", "NFGNN", "PolyGNN"]
SCORES = {
    "minesweeper": {"MLP": 50, "GCN": 72, "NFGNN": 90, "PolyGNN": 89},
    "tolokers": {"MLP": 72, "GCN": 72, "NFGNN": 79, "PolyGNN": 80},
    "chameleon-filtered": {"MLP": 30, "GCN": 42, "NFGNN": 40},
}
RANKS = {
    "NFGNN": ((1 + 1 + 2) / 3, 3),
    "GCN": ((2 + 2.5 + 1) / 3, 3),
    "MLP": ((3 + 2.5 + 3) / 3, 3),
}


@pytest.fixture(scope="module")
def tables() -> list[Table]:
    with pytest.MonkeyPatch.context() as patch:
        # As if all cells had been searched.
        patch.setattr(table_plan, "_lacks_search", lambda model, column: False)
        plan = make_plan("modern", GRAPHS, ROWS, runs=3)
    return make_tables(plan, synthetic(plan), "nfgnn reproduce modern")


def synthetic(plan: Plan) -> Found:
    found: Found = {}
    for label, column in plan.configs:
        (metric,) = plan.metrics[column]
        score = SCORES.get(column.dataset, {}).get(label)
        found[label, column] = [
            make_record(plan, label, column, 1000 + i, **{metric: (score + noise) / 100})
            for i, noise in enumerate((-0.5, 0.1 * len(label), 0.5 - 0.1 * len(label)))
            if score is not None
        ]
    return found


def test_the_plan_has_the_official_splits_and_metrics() -> None:
    plan = make_plan("modern")
    assert plan.file == "modern"
    assert list(plan.seeds) == list(range(1000, 1010))  # seed modulo 10 is the official split
    shown = {column.dataset: (column.protocol, plan.metrics[column]) for column in plan.columns}
    assert list(shown)[:6] == [
        *("minesweeper", "tolokers", "chameleon-filtered", "squirrel-filtered"),
        *("pubmed", "computers"),
    ]
    by_roc_auc = {"minesweeper", "tolokers", "questions", "genius"}
    for dataset, (protocol, metrics) in shown.items():
        expected = "test_roc_auc" if dataset in by_roc_auc else "test_accuracy"
        assert metrics == (expected,), dataset
        assert protocol == ("full" if dataset in ("pubmed", "computers") else "public")
    assert {"penn94", "pokec", "arxiv-year", "twitch-gamers", "ogbn-products"} <= set(shown)
    assert {config.training.select for config in plan.configs.values()} == {"metric"}
    assert [row.label for row in plan.rows] == [
        *("MLP", "LINKX", "GCN", "GAT", "GPRGNN", "FAGCN", "NFGNN", "PolyGNN"),
        *("ACMGCN", "FSGNN", "PolyFormer", "ResidualGCN", "ResidualSAGE", "ResidualGAT"),
        *("ResidualGATSep", "NFNet"),
    ]


def test_published_values_name_their_source() -> None:
    rows = published_rows("modern")
    datasets = {column.dataset for column in TABLES["modern"].columns}
    for row in rows:
        assert row.source
        assert set(row.values) <= datasets
        assert all(20 < value < 100 for value in row.values.values())
    polynormer = next(row for row in rows if row.model == "Polynormer")
    assert polynormer.values["tolokers"] == 85.91
    assert "second hand" in polynormer.source
    recalled = next(row for row in rows if row.model == "GPRGNN")
    assert "unchecked" in recalled.source


def test_every_graph_is_in_the_part_of_its_metric(tables: list[Table]) -> None:
    parts = {table.metric: [column.dataset for column in table.columns] for table in tables}
    assert parts == {
        "test_roc_auc": ["minesweeper", "tolokers"],
        "test_accuracy": ["chameleon-filtered", "pubmed"],
    }
    published = {row.model for row in tables[1].published}
    assert {"GCN, tuned", "Node-MoE", "NFGNN (paper)"} <= published
    assert "Polynormer" not in published


def test_ranks_by_hand(tables: list[Table]) -> None:
    found = {label: (rank.mean, rank.graphs) for label, rank in tables[0].ranks.items()}
    assert found == RANKS
    assert tables[1].ranks == {}


def test_a_model_without_runs_on_a_graph_is_not_ranked(tables: list[Table]) -> None:
    assert tables[0].unranked == {"PolyGNN": ["Chameleon-filtered (public)"]}
    assert tables[1].unranked == {}
    text = markdown(tables)
    assert "Left out: PolyGNN, because it has no runs on Chameleon-filtered (public)" in text


def test_holms_correction_is_over_both_parts(tables: list[Table]) -> None:
    tests = [test for table in tables for test in table.tests if test.against != "PolyGNN"]
    assert [(test.column, test.against) for test in tests] == [
        ("Minesweeper", "GCN"),
        ("Tolokers", "MLP"),  # equal to GCN
        ("Chameleon-filtered (public)", "GCN"),
    ]
    p_values = [test.result.p for test in tests]
    assert [test.p_holm for test in tests] == pytest.approx(holm(p_values))


def test_files_have_ranks_and_published_values(tables: list[Table]) -> None:
    text = markdown(tables)
    assert text.index("| NFGNN | 1.33 | 3 |") < text.index("| GCN | 1.83 | 3 |")
    assert "| Polynormer | 97.46 | 85.91 | its paper, second hand |" in text
    assert "| GCN, tuned | 46.29 | – |" in text
    assert text.count("- Settings: winners of a search by validation scores") == 1
    rows = list(csv.DictReader(io.StringIO(values_csv(tables))))
    ranks = {row["model"]: float(row["mean"]) for row in rows if row["metric"] == "mean_rank"}
    assert ranks == pytest.approx({label: mean for label, (mean, _) in RANKS.items()})
    (tuned,) = (row for row in rows if row["paper"] == "46.29")
    assert (tuned["dataset"], tuned["runs"], tuned["mean"]) == ("chameleon-filtered", "0", "")
    tex = latex(tables)
    assert tex.count(r"\begin{table}") == tex.count(r"\end{table}") == 3
    assert r"NFGNN & 1.33 & 3 \\" in tex


def test_a_cell_without_a_search_stays_empty() -> None:
    """Settings of another origin would not have had the same search effort."""
    plan = make_plan("modern", ["minesweeper", "questions"], ["GCN"])
    assert [column.dataset for _, column in plan.configs] == ["minesweeper"]
    tables = make_tables(plan, {}, "nfgnn reproduce modern")
    assert "| GCN | – | – |" in markdown(tables)
