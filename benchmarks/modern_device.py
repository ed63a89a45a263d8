"""Search and train cells of the table `modern` on one device, without the command line of nfgnn.

    python benchmarks/modern_device.py runs/modern minesweeper:NFNet tolokers:GCN \
        --draws 24 --time-limit 540 --device cuda

Several processes may share a device and the folder. A call that reaches its time limit is resumed
by the same call; more draws may be asked for later. The folder then holds ``records.sqlite`` and
``records.parquet``. On another machine the latter is enough to resume.

    python benchmarks/modern_device.py runs/modern minesweeper:NFNet --draws 24 --collect results

adds the runs of the folder to the records in ``results/`` and writes the winners to the presets.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from nfgnn.errors import UserError
from nfgnn.paper.search.modern import run_modern_search, run_modern_table
from nfgnn.paper.search.modern_files import collect_modern
from nfgnn.progress import Progress
from nfgnn.training import export_records, open_records


def main() -> None:
    options = parse_arguments()
    settings = dict(map(parse_setting, options.set))
    try:
        if options.collect is not None:
            print("written:", *collect(options, settings))
        else:
            train(options, settings)
    except UserError as error:
        sys.exit(f"modern_device: {error}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Search and train cells of the table `modern`.")
    parser.add_argument("folder", type=Path, help="Folder of the records.")
    parser.add_argument("cells", nargs="+", metavar="GRAPH:MODEL", help="Cells, in this order.")
    parser.add_argument("--draws", type=int, default=24, help="Number of draws per cell.")
    parser.add_argument("--finalists", type=int, default=3, help="Draws trained on ten splits.")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda.")
    parser.add_argument("--time-limit", type=float, help="Seconds for everything together.")
    parser.add_argument(
        "--max-batch", type=int, default=12, help="Runs trained as one computation at most."
    )
    parser.add_argument("--root", type=Path, help="Folder with raw datasets.")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="A setting of all draws, such as precision=bfloat16.",
    )
    parser.add_argument(
        "--no-table", action="store_true", help="Only search; do not train the winners."
    )
    parser.add_argument(
        "--collect",
        type=Path,
        metavar="RESULTS",
        help="Train nothing: add the runs to the records of this folder and write the presets.",
    )
    return parser.parse_args()


def parse_setting(text: str) -> tuple[str, Any]:
    """Return name and value; whole and decimal numbers become numbers."""
    name, _, value = text.partition("=")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value


def cells_of(options: argparse.Namespace) -> list[tuple[str, str]]:
    cells = []
    for cell in options.cells:
        graph, colon, model = cell.rpartition(":")
        if not colon:
            raise UserError(f"{cell!r} is not GRAPH:MODEL, such as minesweeper:GCN")
        cells.append((graph, model))
    return cells


def train(options: argparse.Namespace, settings: dict[str, Any]) -> None:
    """Search every cell, then train its winner, until the time limit."""
    end = None
    if options.time_limit is not None:
        end = time.monotonic() + options.time_limit
    common = {
        "settings": settings,
        "max_batch": options.max_batch,
        "root": options.root,
        "progress": Progress("modern"),
    }
    with open_records(options.folder / "records.sqlite") as records:
        for graph, model in cells_of(options):
            cell = ([graph], [model], options.draws, options.device, records)
            found = run_modern_search(
                *cell, seconds_until(end), finalists=options.finalists, **common
            )
            if not options.no_table:
                found += run_modern_table(*cell, seconds_until(end), **common)
            print("\n".join(found), flush=True)
            export_records(records, options.folder / "records.parquet")
            if end is not None and time.monotonic() >= end:
                break


def seconds_until(end: float | None) -> float | None:
    return None if end is None else max(0.0, end - time.monotonic())


def collect(options: argparse.Namespace, settings: dict[str, Any]) -> list[str]:
    with open_records(options.folder / "records.sqlite"):
        pass  # the database is rebuilt from the Parquet file where it is missing
    database = options.folder / "records.sqlite"
    graphs, models = zip(*cells_of(options))
    return collect_modern(
        [database],
        options.collect,
        list(dict.fromkeys(graphs)),
        list(dict.fromkeys(models)),
        options.draws,
        settings,
        options.root,
    )


if __name__ == "__main__":
    main()
