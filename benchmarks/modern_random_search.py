"""A random search of shallow networks on the two smallest graphs of the table `modern`.

    python benchmarks/modern_random_search.py runs/random --root DATA --table results

The search of the table gives every model 18 draws. This one asks what more draws bring: 50 for one
model on one graph, near the shallow networks that had won there. It proceeds in rounds:

1. All draws are trained on the official splits 0 and 1, with a patience of 100 epochs.
2. The ten best of them are trained on the splits 2 to 5, with a patience of 200.
3. The three best of round 2 are trained on all ten splits, with a patience of 500.

The best mean accuracy on validation nodes wins, in every round. Search runs do not score test
nodes. The winner is trained once more on every split, with the seeds of the table.

Every run is a record in the folder, so an interrupted call resumes. `--table` writes
`modern-random-search.md` and, with all runs, `modern-random-search.parquet`.
"""

import argparse
import json
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nfgnn.data import REGISTRY
from nfgnn.errors import UserError
from nfgnn.files import atomic_write
from nfgnn.paper.find_graph import find_graph
from nfgnn.paper.search.engine import Evaluator
from nfgnn.progress import Progress
from nfgnn.training import (
    ProcessPool,
    Record,
    RunConfig,
    export_records,
    open_records,
    summarise,
)

NAME = "modern-random-search"
PROTOCOL = "public"
CELLS = ("chameleon-filtered:NFNet", "squirrel-filtered:NFNet")
NUM_DRAWS = 50
SEED_OF_DRAWS = 1
REPORT_SEEDS = range(1000, 1010)
COMMON: Mapping[str, Any] = {
    "epochs": 2000,
    "select": "metric",
    "features": "standard",
    "precision": "float32",
}
# A value that is listed twice is drawn twice as often.
SHARED_VALUES: Mapping[str, Sequence[Any]] = {
    "num_layers": (1, 2, 3, 4),
    "hidden_channels": (32, 64, 128, 256),
    "norm": ("layer", "layer", "batch"),
    "jumping": ("last", "mean"),
    "lr": (0.002, 0.003, 0.005, 0.01, 0.02),
    "dropout": (0.3, 0.5, 0.6, 0.7, 0.8),
    "input_dropout": (0.0, 0.2, 0.4, 0.6),
    "weight_decay": (0.00005, 0.0005, 0.001, 0.005, 0.01),
}
OWN_VALUES: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "NFNet": {
        "K": (1, 2, 2, 3),
        "self_loops": (False, True),
        "label_smoothing": (0.0, 0.1, 0.2),
    },
    "ResidualGCN": {
        "label_smoothing": (0.0, 0.1, 0.2),
        "root_weight": (True, False),
    },
}


@dataclass(frozen=True)
class Round:
    """A round of the search."""

    splits: range
    patience: int
    count: int
    """Number of configurations."""


ROUNDS = (
    Round(range(2), patience=100, count=NUM_DRAWS),
    Round(range(2, 6), patience=200, count=10),
    Round(range(10), patience=500, count=3),
)

Draw = Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """The winner of a search."""

    graph: str
    model: str
    draw: Draw
    search_runs: Sequence[Record]
    """Of the last round."""
    report_runs: Sequence[Record]


def draws_of(model: str) -> list[Draw]:
    """Return the draws of a model, the same in every call."""
    if model not in OWN_VALUES:
        raise UserError(f"{model} has no values to draw from: choose {' or '.join(OWN_VALUES)}")
    generator = random.Random(SEED_OF_DRAWS)
    values = {**SHARED_VALUES, **OWN_VALUES[model]}
    return [
        {name: generator.choice(choices) for name, choices in values.items()}
        for _ in range(NUM_DRAWS)
    ]


def config_of(model: str, draw: Draw, patience: int) -> RunConfig:
    settings = {**COMMON, **draw, "patience": patience}
    return RunConfig.resolve(model, settings, None, None)


def search(graph: str, model: str, evaluator: Evaluator) -> Result:
    """Search a model on a graph, and train the winner for the report."""
    draws = draws_of(model)
    runs: Sequence[Sequence[Record]] = []
    for part in ROUNDS:
        if runs:
            draws = best(draws, runs, part.count)
        configs = [config_of(model, draw, part.patience) for draw in draws]
        runs = evaluator.evaluate(configs, part.splits)
    (winner,) = best(draws, runs, 1)
    config = config_of(model, winner, ROUNDS[-1].patience)
    (report_runs,) = replace(evaluator, score_test=True).evaluate([config], REPORT_SEEDS)
    return Result(graph, model, winner, runs[draws.index(winner)], report_runs)


def best(draws: Sequence[Draw], runs: Sequence[Sequence[Record]], count: int) -> list[Draw]:
    """Return the draws of highest mean validation accuracy, the first ones among equals."""
    means = [mean_accuracy(found) for found in runs]
    order = sorted(range(len(draws)), key=lambda i: -means[i])
    return [draws[i] for i in order[:count]]


def mean_accuracy(runs: Sequence[Record]) -> float:
    # Rounded, so that means that only differ by the order of their sum are equal.
    return round(sum(run.metrics["val_accuracy"] for run in runs) / len(runs), 9)


def number_of_runs() -> int:
    """Return the number of runs of one search."""
    return sum(part.count * len(part.splits) for part in ROUNDS) + len(REPORT_SEEDS)


def write_page(results: Sequence[Result], command: str, folder: Path) -> None:
    lines = [
        "# A random search on the two smallest graphs of the newer benchmarks",
        "",
        f"{NUM_DRAWS} draws per model and graph, near the shallow networks that won the search of "
        "`modern.md`.",
        "Validation accuracy selects in every round; search runs do not score test nodes. The",
        f"script describes the rounds and holds the values. `{NAME}.parquet` has all runs. Scores",
        "are in %, mean ± half-width of the 95 % interval over the ten official splits. Other",
        "models were not searched as long, and the test scores of `modern.md` were known when the",
        "values to draw from were chosen, so compare these numbers with care.",
        "",
        "| graph | model | validation, search | validation, report | test, report | winner |",
        "|---|---|---:|---:|---:|---|",
    ]
    for result in results:
        scores = [
            interval(result.search_runs, "val_accuracy"),
            interval(result.report_runs, "val_accuracy"),
            interval(result.report_runs, "test_accuracy"),
        ]
        title = REGISTRY[result.graph].title
        settings = ", ".join(f"{key} = {json.dumps(v)}" for key, v in result.draw.items())
        lines.append(f"| {title} | {result.model} | {' | '.join(scores)} | `{settings}` |")
    machines = {f"{r.device} ({r.machine})" for result in results for r in result.report_runs}
    lines += [
        "",
        "## How it was made",
        "",
        f"- Command: `{command}`",
        f"- Seeds: 0 to 9 for the search, {REPORT_SEEDS[0]} to {REPORT_SEEDS[-1]} for the report; "
        "the same ten splits, other weights",
        f"- Machine: {', '.join(sorted(machines))}",
    ]
    atomic_write(folder / f"{NAME}.md", "\n".join(lines) + "\n")


def interval(runs: Sequence[Record], metric: str) -> str:
    summary = summarise([100 * run.metrics[metric] for run in runs])
    return f"{summary['mean']:.2f} ± {summary['ci95']:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder of the records")
    parser.add_argument("cells", nargs="*", default=CELLS, metavar="GRAPH:MODEL")
    parser.add_argument("--root", type=Path, help="folder of the graphs")
    parser.add_argument("--device", default="cpu", help="auto, cpu or cuda")
    parser.add_argument("--workers", type=int, default=1, help="processes on a CPU")
    parser.add_argument("--table", type=Path, metavar="RESULTS", help="write the table here")
    options = parser.parse_intermixed_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    try:
        results = search_all(options)
    except UserError as error:
        sys.exit(f"modern_random_search: {error}")
    if options.table is not None:
        command = f"python benchmarks/modern_random_search.py FOLDER --device {options.device}"
        write_page(results, command, options.table)
        with open_records(options.folder / "records.sqlite") as records:
            export_records(records, options.table / f"{NAME}.parquet")


def search_all(options: argparse.Namespace) -> list[Result]:
    """Search all cells, and return their winners."""
    results = []
    with (
        open_records(options.folder / "records.sqlite") as records,
        ProcessPool(options.workers, single_thread=True) as executor,
        Progress("random search") as progress,
    ):
        total = len(options.cells) * number_of_runs()
        progress.start(total, total)
        for cell in options.cells:
            graph, _, model = cell.partition(":")
            found = find_graph(graph, options.root)
            evaluator = Evaluator(
                found, PROTOCOL, records, progress, options.device, executor=executor
            )
            results.append(search(graph, model, evaluator))
            progress.say(f"{cell}: test {interval(results[-1].report_runs, 'test_accuracy')}")
    return results


if __name__ == "__main__":
    main()
