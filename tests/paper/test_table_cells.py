"""Paired tests of hand-made records."""

from pathlib import Path

import pytest
from helpers.table_records import make_record
from scipy.stats import ttest_rel

from nfgnn.data import export_graph, mixed_graph
from nfgnn.paper.reproduce import Found
from nfgnn.paper.statistics import holm
from nfgnn.paper.table_cells import make_tables, mean_ranks
from nfgnn.paper.table_plan import Plan, make_plan
from nfgnn.paper.table_writer import markdown


def test_the_test_is_on_common_splits_and_corrected_over_the_graphs(
    full: tuple[Plan, Found],
) -> None:
    (table,) = make_tables(*full, "c")
    texas, cornell = (t for t in table.tests if t.model == "NFGNN (best)")
    assert (texas.result.runs, cornell.result.runs) == (3, 2)
    ps = [
        ttest_rel([0.90, 0.92, 0.95], [0.90, 0.91, 0.92]).pvalue,
        ttest_rel([0.85, 0.86], [0.86, 0.88]).pvalue,
    ]
    assert [texas.result.p, cornell.result.p] == pytest.approx(ps)
    assert min(texas.p_holm, cornell.p_holm) == pytest.approx(min(1, 2 * min(ps)))
    assert max(texas.p_holm, cornell.p_holm) == pytest.approx(max(2 * min(ps), max(ps)))
    (paper_form,) = (
        t for t in table.tests if t.model == "NFGNN (paper form)"
    )  # no run of it on Cornell
    assert paper_form.against == "MLP"
    assert paper_form.p_holm == paper_form.result.p


def losses_of_two_graphs(tmp_path: Path) -> tuple[Plan, Found]:
    """Return records of three models on two graphs whose files have the same name."""
    graphs = []
    for number, folder in enumerate(("first", "second")):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "people.npz"
        export_graph(mixed_graph(60, 3, num_features=4, seed=number), path, "npz")
        graphs.append(str(path))
    plan = make_plan(
        "own", graphs, ["NFGNN", "MLP", "GCN"], runs=3, settings={"metric": "log_loss"}
    )
    first, second = plan.columns
    losses = {
        ("NFGNN", first): (0.50, 0.52, 0.51),
        ("MLP", first): (2.00, 2.10, 2.05),
        ("GCN", first): (0.40, 0.41, 0.39),
        ("NFGNN", second): (0.30, 0.35, 0.31),
        ("MLP", second): (0.40, 0.41, 0.34),
        ("GCN", second): (0.90, 0.97, 0.92),
    }
    found: Found = {}
    for (label, column), values in losses.items():
        found[label, column] = [
            make_record(plan, label, column, 1000 + i, test_log_loss=value)
            for i, value in enumerate(values)
        ]
    return plan, found


def test_the_lowest_loss_is_the_best(tmp_path: Path) -> None:
    plan, found = losses_of_two_graphs(tmp_path)
    (table,) = make_tables(plan, found, "c")
    assert [test.against for test in table.tests] == ["GCN", "MLP"]
    best = {label: [entry.best for entry in row] for label, row in table.rows.items()}
    assert best == {"NFGNN": [False, True], "MLP": [False, False], "GCN": [True, False]}
    ranks = {label: rank.mean for label, rank in mean_ranks([table], list(table.rows)).items()}
    assert ranks == {"NFGNN": 1.5, "MLP": 2.5, "GCN": 2.0}
    text = markdown([table])
    assert "bold: the lowest mean of the column" in text
    assert "the difference in nats" in text


def test_graphs_of_one_name_have_corrected_p_values_of_their_own(tmp_path: Path) -> None:
    plan, found = losses_of_two_graphs(tmp_path)
    (table,) = make_tables(plan, found, "c")
    assert [test.column for test in table.tests] == ["people", "people"]
    p_values = [test.result.p for test in table.tests]
    assert [test.p_holm for test in table.tests] == pytest.approx(holm(p_values))
    assert table.tests[0].p_holm != table.tests[1].p_holm
