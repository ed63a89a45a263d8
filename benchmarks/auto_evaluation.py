"""Evaluate `nfgnn auto` on graphs that it does not know, without the command line of nfgnn.

    python benchmarks/auto_evaluation.py runs/auto --write-portfolios results
    python benchmarks/auto_evaluation.py runs/auto --root DATA --workers 8 --time-limit 590
    python benchmarks/auto_evaluation.py runs/auto --root DATA --methods defaults --device cuda
    python benchmarks/auto_evaluation.py runs/auto --table results

The first command selects a portfolio per graph from the records of all other graphs. The second one
compares `auto` with `tune`, the presets and the defaults of all models; every process has two cores
of its own. Two such commands at the same time would use the same cores: start one with more
workers, or divide the cores with `taskset`. It starts nothing that may exceed the time limit, and
the same command continues from the records in the folder. The last one writes `auto.md`, `auto.csv`
and `figures/auto_budget.*`. Results of an earlier `auto.csv` stay unless the folder has newer ones
of the same graph, protocol, seed, method and budget.
"""

import argparse
import math
import sys
import time
from pathlib import Path

from nfgnn.errors import UserError
from nfgnn.paper.search.portfolio_matrix import make_matrix
from nfgnn.paper.search.portfolio_report import RECORDS
from nfgnn.paper.studies.auto_plan import KINDS, SECONDS, SEEDS, evaluation_columns, evaluation_jobs
from nfgnn.paper.studies.auto_records import TABLE, newest_records, read_records, read_table
from nfgnn.paper.studies.auto_runs import (
    Evaluation,
    run_evaluation,
    write_portfolios,
)
from nfgnn.progress import Progress, parse_duration
from nfgnn.training import open_records

DEFAULT_BUDGET = f"{SECONDS:g}s"


def main() -> None:
    options = parse_arguments()
    try:
        if options.write_portfolios is not None:
            select_portfolios(options)
        elif options.table is not None:
            write_tables(options)
        else:
            evaluate(options)
    except UserError as error:
        sys.exit(f"auto_evaluation: {error}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder of the results")
    parser.add_argument("--graphs", nargs="+", metavar="GRAPH", help="all by default")
    parser.add_argument("--methods", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--time", default=DEFAULT_BUDGET, help="budget of a search, such as 5m")
    parser.add_argument("--budgets", help="several budgets, such as 30s,1m,5m,20m")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--root", type=Path, help="folder of the graphs")
    parser.add_argument("--portfolios", type=Path, help="default: FOLDER/portfolios")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--workers", type=int, default=1, help="number of parallel processes")
    parser.add_argument("--cores", type=int, default=2, help="cores of a process")
    parser.add_argument("--slice", default="0/1", metavar="I/N", help="part I of N parts, from 0")
    parser.add_argument("--time-limit", type=float, default=math.inf, help="seconds for everything")
    parser.add_argument(
        "--write-portfolios",
        type=Path,
        metavar="RESULTS",
        help="train nothing: select the portfolios from the records in this folder",
    )
    parser.add_argument(
        "--table",
        type=Path,
        metavar="RESULTS",
        help="train nothing: write the tables and the figure to this folder",
    )
    return parser.parse_args()


def portfolios_of(options: argparse.Namespace) -> Path:
    return options.portfolios or options.folder / "portfolios"


def budgets_of(options: argparse.Namespace) -> list[float]:
    return [parse_duration(text) for text in (options.budgets or options.time).split(",")]


def select_portfolios(options: argparse.Namespace) -> None:
    with open_records(options.write_portfolios / f"{RECORDS}.sqlite") as records:
        matrix = make_matrix(records.all())
    if not matrix.candidates:
        raise UserError(f"{options.write_portfolios} has no records of the portfolio's candidates")
    folder = portfolios_of(options)
    write_portfolios(matrix, evaluation_columns(options.graphs), folder)
    print(f"written: {folder}")


def command_of(options: argparse.Namespace) -> str:
    """Return the command without what depends on the machine."""
    words = ["python benchmarks/auto_evaluation.py FOLDER --root DATA", "--methods"]
    words += [*options.methods, "--time", options.budgets or options.time]
    return " ".join([*words, "--device", options.device, "--cores", str(options.cores)])


def evaluate(options: argparse.Namespace) -> None:
    started = time.time()
    if options.root is None:
        raise UserError("name the folder of the graphs with --root")
    part, _, parts = options.slice.partition("/")
    columns = evaluation_columns(options.graphs)
    jobs = evaluation_jobs(columns, options.methods, budgets_of(options), options.seeds)
    evaluation = Evaluation(
        options.folder,
        options.root,
        portfolios_of(options),
        started + options.time_limit,
        options.device,
        options.cores,
        command_of(options),
    )
    with Progress("auto") as progress:
        run_evaluation(jobs[int(part) :: int(parts)], evaluation, options.workers, progress)


def write_tables(options: argparse.Namespace) -> None:
    # Figures are not drawn on machines that only train.
    from nfgnn.paper.studies.auto_report import write_auto_report

    # Results whose lines are gone are still in the table.
    records = newest_records(read_table(options.table / TABLE), read_records(options.folder))
    for path in write_auto_report(records, options.table, parse_duration(options.time)):
        print(f"written: {path}")


if __name__ == "__main__":
    main()
