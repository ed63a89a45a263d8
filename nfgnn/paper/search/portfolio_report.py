"""Write the portfolio, and how good it is on graphs that it was not chosen by.

Every graph is left out in turn, with the graphs that share nodes with it and the candidates that
they suggested. The portfolio that the others select is then evaluated on it.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nfgnn.errors import UserError
from nfgnn.existing_output import refuse_foreign_file, starts_with
from nfgnn.files import atomic_write
from nfgnn.paper.search.portfolio_candidates import (
    Column,
    config_key,
    portfolio_candidates,
    portfolio_columns,
)
from nfgnn.paper.search.portfolio_files import portfolio_text
from nfgnn.paper.search.portfolio_matrix import Matrix, Values, make_matrix
from nfgnn.paper.search.portfolio_runs import PortfolioRuns
from nfgnn.paper.search.portfolio_selection import select_portfolio
from nfgnn.progress import Progress
from nfgnn.training import Record, export_records, has_records, open_records

NAME = "portfolio"
RECORDS = "portfolio-search"
SIZES = (1, 2, 4, 8, 16, 24)
"""Numbers of first entries that the report evaluates."""
_TITLE = "# The portfolio of `nfgnn auto`"
_NOTES = (
    "The configurations that `nfgnn auto` trains first, in this order.",
    "`nfgnn reproduce portfolio --from-records` selects them: see nfgnn/paper/search.",
)
_NO_LIMIT = 1e9  # seconds
_NO_CANDIDATE = (
    "no candidate of the portfolio is recorded, so nothing is written: run the same command "
    "without --from-records"
)


@dataclass(frozen=True)
class Evaluation:
    """The portfolio of the other graphs on one graph."""

    column: Column
    regret: Values
    """On validation nodes, of the best of the first entries, by :data:`SIZES`."""
    test: Values
    """Test score of the entry with the best validation score, in percent, by :data:`SIZES`."""
    test_of_all: float
    """The same of all candidates together."""


def write_portfolio_report(
    out: Path,
    root: Path | None = None,
    device: str = "auto",
    progress: Progress | None = None,
    from_records: bool = False,
) -> list[Path]:
    """Train missing runs, select the portfolio, and evaluate it.

    Args:
        out: folder to write to. Records are in ``portfolio-search.sqlite`` there, and are exported
            to ``portfolio-search.parquet``.
        root: folder of the graphs.
        device: where to train.
        progress: the display.
        from_records: train nothing.

    Returns:
        The paths of the Markdown, CSV and TOML files.
    """
    refuse_foreign_file(out / f"{NAME}.md", starts_with(_TITLE), "a report")
    refuse_foreign_file(out / f"{NAME}.toml", starts_with(f"# {_NOTES[0]}"), "a portfolio")
    database = out / f"{RECORDS}.sqlite"
    if from_records and not has_records(database):
        raise UserError(_NO_CANDIDATE)
    with open_records(database) as records:
        if not from_records:
            if root is None:
                raise UserError("name the folder of the graphs with --root")
            display = progress or Progress(NAME, quiet=True)
            runs = PortfolioRuns(out, records, root, device, _NO_LIMIT, _NO_LIMIT, display)
            runs.train(portfolio_columns(), portfolio_candidates())
        found = records.all()
        export_records(records, out / f"{RECORDS}.parquet")
    matrix = make_matrix(found)
    if not matrix.candidates:
        raise UserError(_NO_CANDIDATE)
    evaluations = leave_one_out(matrix)
    chosen = [matrix.candidates[row].config for row in select_portfolio(matrix)]
    texts = {
        "md": report(matrix, evaluations, found),
        "csv": values_csv(evaluations),
        "toml": portfolio_text(chosen, _NOTES),
    }
    for ending, text in texts.items():
        atomic_write(out / f"{NAME}.{ending}", text)
    return [out / f"{NAME}.{ending}" for ending in texts]


def leave_one_out(matrix: Matrix) -> list[Evaluation]:
    """Evaluate on every graph the portfolio that is selected without it."""
    row_of = {config_key(c.config): row for row, c in enumerate(matrix.candidates)}
    evaluations = []
    for number, column in enumerate(matrix.columns):
        part = matrix.without(column.name)
        selected = [part.candidates[row] for row in select_portfolio(part, max(SIZES))]
        rows = [row_of[config_key(candidate.config)] for candidate in selected]
        validation = matrix.validation[:, number]
        test = matrix.test[:, number]
        regret = np.full(len(SIZES), np.nan)
        test_of_best = np.full(len(SIZES), np.nan)
        for place, size in enumerate(SIZES):
            known = [row for row in rows[:size] if not np.isnan(validation[row])]
            if known:
                best = max(known, key=lambda row: validation[row])
                regret[place] = np.nanmax(validation) - validation[best]
                test_of_best[place] = test[best]
        of_all = float(test[np.nanargmax(validation)])
        evaluations.append(Evaluation(column, regret, test_of_best, of_all))
    return evaluations


def report(matrix: Matrix, evaluations: Sequence[Evaluation], records: Sequence[Record]) -> str:
    """Return the tables in Markdown."""
    machines = sorted({f"{record.device} ({record.machine})" for record in records})
    cells = matrix.validation.size
    known = int(np.count_nonzero(~np.isnan(matrix.validation)))
    lines = [
        _HEAD.format(
            title=_TITLE,
            candidates=len(matrix.candidates),
            columns=len(matrix.columns),
            known=known,
            cells=cells,
            machines="; ".join(machines),
        ),
        *_table([_label(e.column) for e in evaluations], [e.regret for e in evaluations]),
        "",
        _TEST,
        *_table(
            [_label(e.column) for e in evaluations],
            [np.append(e.test, e.test_of_all) for e in evaluations],
            [f"all {len(matrix.candidates)}"],
        ),
        "",
        _ORDER,
    ]
    remaining = matrix.regret()
    best = np.full(len(matrix.columns), np.inf)
    for number, row in enumerate(select_portfolio(matrix), start=1):
        candidate = matrix.candidates[row]
        best = np.fmin(best, remaining[row])
        finite = best[np.isfinite(best)]
        settings = candidate.config.settings()
        named = ", ".join(f"{name} {settings[name]}" for name in _SHOWN if name in settings)
        cost = f"{matrix.cost[row]:.1f}"
        lines.append(
            f"| {number} | {candidate.config.model} | {named} | {cost} | {finite.mean():.2f} |"
        )
    return "\n".join(lines) + "\n"


def values_csv(evaluations: Sequence[Evaluation]) -> str:
    """Return one line per graph and number of entries."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["graph", "protocol", "entries", "validation_regret", "test"])
    for evaluation in evaluations:
        column = evaluation.column
        for size, regret, test in zip(SIZES, evaluation.regret, evaluation.test):
            writer.writerow([column.name, column.protocol, size, f"{regret:.4f}", f"{test:.4f}"])
    return text.getvalue()


def _label(column: Column) -> str:
    return f"{column.name} ({column.protocol})"


def _table(labels: Sequence[str], rows: Sequence[Values], more: Sequence[str] = ()) -> list[str]:
    """Return a table with a line per graph and one with the means."""
    header = ["graph", *map(str, SIZES), *more]
    lines = [f"| {' | '.join(header)} |", "|---|" + "---:|" * (len(header) - 1)]
    means = np.nanmean(np.array(rows), axis=0)
    for label, values in [*zip(labels, rows), ("**mean**", means)]:
        shown = ["–" if np.isnan(value) else f"{value:.2f}" for value in values]
        lines.append(f"| {' | '.join([label, *shown])} |")
    return lines


_SHOWN = (
    "features",
    "hidden_channels",
    "num_layers",
    "K",
    "basis",
    "gate",
    "link",
    "lr",
    "weight_decay",
    "dropout",
)
_HEAD = """{title}

`nfgnn reproduce portfolio --from-records` makes this file. {candidates} candidates were trained on
{columns} graphs with the seeds 0 and 1, at most 500 epochs, patience 100; {known} of {cells} cells
are complete. Trained on: {machines}.

## Regret on a graph that was left out

By how many points of the metric, on validation nodes, the best of the first entries is worse than
the best of all candidates. The portfolio is selected without the graph, without the graphs that
share nodes with it, and without the candidates that one of them suggested. Columns: number of
entries. An entry that was not trained on the graph is skipped, although it counts.
"""
_TEST = """## Test scores

In percent, of the entry with the best validation score among the first entries, and among all
candidates, with nothing left out in the last column. Test scores select nothing.
"""
_ORDER = """## The entries

Selected with all graphs. Cost: seconds of a run relative to the median candidate on the same graph.
Regret: mean over graphs of the smallest regret up to this entry.

| | model | settings | cost | regret |
|---:|---|---|---:|---:|"""
