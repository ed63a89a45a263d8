"""Train the candidates of the portfolio on all graphs, without the command line of nfgnn.

    python benchmarks/portfolio_device.py runs/portfolio --data ../shared/data --device cuda

Several processes may share the folder and a device: each trains what no other one is training.
``--start N`` begins with the N-th graph, so that they meet late. On a machine with a GPU and many
cores (under MPS, with ``OMP_NUM_THREADS=1``)::

    SMALL="texas cornell wisconsin reed98 chameleon-filtered cora citeseer"
    SCRIPT="python benchmarks/portfolio_device.py runs/portfolio --data ../shared/data"
    for i in $(seq 0 9);  do $SCRIPT --device cuda --start $i --last $SMALL --time-limit 480 & done
    for i in $(seq 0 11); do $SCRIPT --device cpu --start $i --only $SMALL --time-limit 480 & done
    wait

The folder then holds ``portfolio.sqlite``. The same commands resume after the time limit.
Defaults are trained on all graphs before other candidates, so an incomplete file can be used.
``--count`` reports how complete it is. ``--collect results`` adds the runs to
``results/portfolio-search.parquet``, and ``nfgnn reproduce portfolio --from-records`` selects the
portfolio from it.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from nfgnn.errors import UserError
from nfgnn.files import atomic_write
from nfgnn.paper.search import portfolio_candidates as candidates
from nfgnn.paper.search.portfolio_candidates import (
    Column,
    portfolio_candidates,
    portfolio_columns,
)
from nfgnn.paper.search.portfolio_report import RECORDS
from nfgnn.paper.search.portfolio_runs import DATABASE, SEEDS, PortfolioRuns
from nfgnn.progress import Progress
from nfgnn.training import Records, export_records, open_records

_NO_LIMIT = 1e9  # seconds


def main() -> None:
    options = parse_arguments()
    try:
        if options.make_candidates:
            write_candidates()
        elif options.count:
            count(options.folder)
        elif options.collect is not None:
            collect(options.folder, options.collect)
        else:
            train(options)
    except UserError as error:
        sys.exit(f"portfolio_device: {error}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of the records")
    parser.add_argument("--data", type=Path, help="folder of the graphs; it contains own/")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--only", nargs="+", metavar="GRAPH", help="train on these graphs")
    parser.add_argument("--last", nargs="+", metavar="GRAPH", help="train on these graphs last")
    parser.add_argument("--models", nargs="+", metavar="MODEL", help="candidates of these models")
    parser.add_argument("--start", type=int, default=0, help="number of the first graph")
    parser.add_argument("--time-limit", type=float, default=_NO_LIMIT, help="seconds")
    parser.add_argument(
        "--task-limit", type=float, default=60, help="seconds for runs that are trained together"
    )
    parser.add_argument("--collect", type=Path, metavar="RESULTS", help="add the runs to a folder")
    parser.add_argument(
        "--make-candidates",
        action="store_true",
        help="take new candidates from the presets of today; train nothing",
    )
    parser.add_argument("--count", action="store_true", help="count the runs; train nothing")
    return parser.parse_args()


def write_candidates() -> None:
    """Replace the file of the candidates in this checkout."""
    path = Path(candidates.__file__).with_name(candidates.CANDIDATES)
    atomic_write(path, candidates.candidates_text(candidates.make_candidates()))


def train(options: argparse.Namespace) -> None:
    """Train what is missing, first on the graphs that are not last."""
    if options.data is None:
        raise UserError("name the folder of the graphs with --data")
    columns = portfolio_columns()
    if options.only is not None:
        columns = [column for column in columns if column.name in options.only]
    late = [column for column in columns if column.name in (options.last or [])]
    early = [column for column in columns if column not in late]
    chosen = portfolio_candidates()
    if options.models is not None:
        chosen = tuple(c for c in chosen if c.config.model in options.models)
    with open_records(options.folder / DATABASE) as records, Progress("portfolio") as progress:
        runs = PortfolioRuns(
            options.folder,
            records,
            options.data,
            options.device,
            options.time_limit,
            options.task_limit,
            progress,
        )
        for group in (early, late):
            for line in runs.train(rotated(group, options.start), chosen):
                progress.say(line)


def rotated(columns: Sequence[Column], start: int) -> list[Column]:
    start %= max(1, len(columns))
    return [*columns[start:], *columns[:start]]


def count(folder: Path) -> None:
    """Print the number of runs on every graph."""
    total = len(portfolio_candidates()) * len(SEEDS)
    with open_records(folder / DATABASE) as records:
        counts = Counter((record.dataset, record.protocol) for record in records.all())
    for column in portfolio_columns():
        found = counts[column.name, column.protocol]
        print(f"{column.name} ({column.protocol}): {found} of {total} runs")


def collect(folder: Path, results: Path) -> None:
    """Add the runs of all databases of a folder to the committed records."""
    with open_records(results / f"{RECORDS}.sqlite") as records:
        for database in sorted(folder.glob("*.sqlite")):
            with Records(database) as source:
                records.add(source.all())
        export_records(records, results / f"{RECORDS}.parquet")


if __name__ == "__main__":
    main()
