"""The evaluation of the portfolio on graphs that were left out, and its files."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

from nfgnn.auto import load_portfolio
from nfgnn.errors import UserError
from nfgnn.paper.search.portfolio_candidates import portfolio_candidates
from nfgnn.paper.search.portfolio_matrix import make_matrix
from nfgnn.paper.search.portfolio_report import SIZES, leave_one_out, write_portfolio_report
from nfgnn.paper.search.portfolio_selection import select_portfolio
from nfgnn.training import Record, open_records

RESULTS = Path(__file__).parents[2] / "results"
GRAPHS = ("cora", "texas", "chameleon", "actor")


def some_records() -> list[Record]:
    """Return runs of 40 candidates on four graphs with random scores."""
    generator = np.random.default_rng(0)
    records = []
    for candidate in portfolio_candidates()[::4]:
        config = candidate.config.to_dict()
        for dataset in GRAPHS:
            score = float(generator.uniform(0.3, 0.9))
            metrics = {"val_accuracy": score, "test_accuracy": score - 0.1, "seconds": 1.0}
            records += [
                Record(dataset, dataset, "full", seed, config, metrics, "cpu", "two cores")
                for seed in (0, 1)
            ]
    return records


def test_evaluations_match_a_direct_computation() -> None:
    matrix = make_matrix(some_records())
    for number, evaluation in enumerate(leave_one_out(matrix)):
        part = matrix.without(evaluation.column.name)
        assert evaluation.column not in part.columns
        order = select_portfolio(part, max(SIZES))
        scores = {id(c): matrix.validation[row, number] for row, c in enumerate(matrix.candidates)}
        best = matrix.validation[:, number].max()
        for size, regret, test in zip(SIZES, evaluation.regret, evaluation.test):
            reached = max(scores[id(part.candidates[row])] for row in order[:size])
            assert regret == pytest.approx(best - reached)
            assert test == pytest.approx(reached - 10)
        assert evaluation.test_of_all == pytest.approx(best - 10)


def test_files_are_written_from_records(tmp_path: Path) -> None:
    with open_records(tmp_path / "portfolio-search.sqlite") as records:
        records.add(some_records())
    markdown, table, portfolio = write_portfolio_report(tmp_path, from_records=True)
    matrix = make_matrix(some_records())
    chosen = [matrix.candidates[row].config for row in select_portfolio(matrix)]
    assert [entry.config for entry in load_portfolio(portfolio)] == chosen
    cells = len(matrix.candidates) * len(GRAPHS)
    assert f"{cells} of {cells} cells" in markdown.read_text().replace("\n", " ")
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert len(rows) == len(GRAPHS) * len(SIZES)
    (first,) = (r for r in rows if r["graph"] == "actor" and r["entries"] == "8")
    (actor,) = (e for e in leave_one_out(matrix) if e.column.name == "actor")
    assert float(first["validation_regret"]) == pytest.approx(actor.regret[3], abs=1e-4)
    # The same records give the same files again.
    before = [file.read_bytes() for file in (markdown, table, portfolio)]
    write_portfolio_report(tmp_path, from_records=True)
    assert [file.read_bytes() for file in (markdown, table, portfolio)] == before


def test_committed_files_are_what_the_committed_runs_select(tmp_path: Path) -> None:
    shutil.copy(RESULTS / "portfolio-search.parquet", tmp_path)
    markdown, table, portfolio = write_portfolio_report(tmp_path, from_records=True)
    assert markdown.read_text() == (RESULTS / "portfolio.md").read_text()
    assert table.read_text() == (RESULTS / "portfolio.csv").read_text()
    assert load_portfolio(portfolio) == load_portfolio()


def test_nothing_is_written_without_records(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no candidate of the portfolio is recorded"):
        write_portfolio_report(tmp_path, from_records=True)
    with pytest.raises(UserError, match="--root"):
        write_portfolio_report(tmp_path)
    (tmp_path / "portfolio.md").write_text("mine")
    with pytest.raises(UserError, match=r"portfolio\.md"):
        write_portfolio_report(tmp_path, from_records=True)
