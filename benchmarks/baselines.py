"""Accuracy of every baseline beside the NFGNN paper's value, on the report's splits (seeds from 1000 on).

    python benchmarks/baselines.py --workers 16 --out results/baselines.json

A cell is a model on a dataset under a protocol; its runs are spread over worker processes. Models that gather
along edges train on the GPU where there is one, the rest is faster on single CPU cores. Finished cells are
kept in ``--out`` and not run again, unless their preset has changed. Beside the JSON, which has every value,
stand a table (``.md``) and the runs (``.csv``).
"""

import argparse
import csv
import json
import math
import os
import platform
import shlex
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch_geometric
from torch_geometric.data import Data

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.training import RunConfig
from nfgnn.training.metrics import summarise

MODELS = ["MLP", "LINK", "GCN", "GAT", "ChebNet", "SGC"]
MODELS += ["APPNP", "ARMA", "GPRGNN", "BernNet", "FAGCN", "BMGCN"]
DATASETS = ["cora", "citeseer", "chameleon", "texas"]
PROTOCOLS = ["full", "semi"]
ALONG_EDGES = {"GAT", "FAGCN", "BMGCN"}
"""Models that gather along edges: slow on a CPU unless the graph is tiny."""

# Mean and half-width of the 95 % interval, in percent. The paper has neither SGC nor ARMA in these tables.
PAPER = {
    "full": {
        "MLP": ((77.37, 0.51), (76.26, 0.49), (46.72, 0.46), (92.26, 0.71)),
        "LINK": ((80.88, 0.58), (60.76, 1.35), (71.09, 1.16), (89.61, 1.52)),
        "GCN": ((86.99, 1.23), (79.67, 0.86), (60.96, 0.78), (75.16, 0.96)),
        "GAT": ((88.13, 0.72), (80.33, 0.60), (63.90, 0.46), (78.87, 0.86)),
        "ChebNet": ((86.36, 0.46), (79.32, 0.39), (59.96, 0.51), (86.08, 0.96)),
        "APPNP": ((88.20, 0.62), (80.22, 0.63), (51.91, 0.56), (91.18, 0.70)),
        "GPRGNN": ((88.57, 0.69), (80.13, 0.67), (67.48, 0.40), (92.92, 0.61)),
        "BernNet": ((88.06, 0.91), (80.17, 0.78), (68.73, 0.57), (92.30, 1.23)),
        "FAGCN": ((88.57, 0.92), (83.51, 0.43), (61.59, 1.98), (89.61, 1.52)),
        "BMGCN": ((87.49, 1.18), (80.54, 0.35), (69.69, 1.21), (93.00, 0.57)),
    },
    "semi": {
        "MLP": ((50.34, 0.48), (52.88, 0.51), (22.47, 2.05), (45.15, 2.46)),
        "LINK": ((42.94, 2.02), (25.52, 1.98), (38.97, 1.92), (44.89, 7.08)),
        "GCN": ((75.21, 0.38), (67.30, 0.35), (35.73, 0.87), (32.40, 2.31)),
        "GAT": ((76.70, 0.42), (67.20, 0.46), (36.17, 0.47), (35.11, 3.32)),
        "ChebNet": ((71.39, 0.51), (65.67, 0.38), (32.36, 1.61), (28.51, 4.03)),
        "APPNP": ((79.41, 0.38), (68.59, 0.30), (30.12, 0.92), (46.44, 3.10)),
        "GPRGNN": ((79.51, 0.36), (67.63, 0.38), (31.46, 0.89), (44.76, 4.33)),
        "BernNet": ((76.37, 0.36), (65.83, 0.61), (27.33, 1.14), (48.21, 3.17)),
        "FAGCN": ((78.10, 0.21), (66.77, 0.18), (37.24, 3.54), (48.44, 1.78)),
        "BMGCN": ((74.07, 0.25), (64.34, 0.92), (41.22, 1.11), (48.21, 4.39)),
    },
}


TOLERANCE = 0.015
"""How far below the paper a value may be before the report asks for a reason."""

BM_GCN = (
    "A known difference, not a proof: the model's own code keeps the epoch of best validation accuracy after at least "
    "800 epochs; here, as for all models, it is the epoch of least validation loss. Waiting 800 epochs was tried on "
    "Chameleon semi alone (two search seeds) and did not help."
)
REASONS = {
    (
        "FAGCN",
        "citeseer",
        "full",
    ): "The paper's value is the highest of any model on these splits; the authors of ACM-GCN "
    "measured 82.37 for FAGCN.",
    ("LINK", "texas", "full"): "The paper's value and interval are, digit by digit, those of FAGCN in the same column; "
    "weight decays of 0.0005 and 0.05 left a model that sees links only below 77 on the search seeds.",
    ("BMGCN", "chameleon", "full"): BM_GCN,
    ("BMGCN", "chameleon", "semi"): BM_GCN,
    ("BMGCN", "texas", "full"): BM_GCN,
}
"""Why a value is below the paper's, where that is known."""


class Cell(NamedTuple):
    """One entry of the table."""

    model: str
    dataset: str
    protocol: str

    def paper(self) -> tuple[float, float] | None:
        """The paper's mean and confidence interval as fractions."""
        if self.dataset not in DATASETS or self.model not in PAPER.get(self.protocol, {}):
            return None
        mean, ci95 = PAPER[self.protocol][self.model][DATASETS.index(self.dataset)]
        return mean / 100, ci95 / 100

    def config(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The preset, with ``settings`` over it."""
        return RunConfig.resolve(self.model, settings, self.dataset, self.protocol).to_dict()


def main() -> None:
    args = parse_arguments()
    if args.root:
        os.environ["NFGNN_DATA"] = args.root
    seeds = list(range(args.seed, args.seed + args.runs))
    cells = [Cell(m, d, p) for p in args.protocols for d in args.datasets for m in args.models]
    results = json.loads(args.out.read_text()) if args.out.is_file() else {"cells": []}
    done = {Cell(c["model"], c["dataset"], c["protocol"]): c for c in results["cells"]}
    todo = [
        cell
        for cell in cells
        if cell not in done or done[cell]["seeds"] != seeds or done[cell]["config"] != cell.config(args.set)
    ]
    print(
        f"{len(cells)} cells, {len(cells) - len(todo)} of them finished before; {args.runs} runs each",
        flush=True,
    )
    for name in args.datasets:  # read once before many processes do
        graph(name)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    for count, (cell, runs) in enumerate(finished_cells(todo, seeds, args), 1):
        done[cell] = summary(cell, seeds, runs, args.set)
        ordered = sorted(done.values(), key=lambda c: (c["protocol"], c["dataset"], MODELS.index(c["model"])))
        results = {"command": f"python {shlex.join(sys.argv)}", "machine": machine(), "cells": ordered}
        partial = args.out.with_suffix(".partial")
        partial.write_text(json.dumps(results, indent=1))
        partial.replace(args.out)
        print(f"{time.perf_counter() - start:5.0f} s  {count}/{len(todo)}  {line(done[cell])}", flush=True)
    write_report(results, args.out)
    print()
    for cell in cells:
        print(line(done[cell]))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--protocols", nargs="+", default=PROTOCOLS)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1000, help="the first one; below 1000 only for choosing presets")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes in all")
    parser.add_argument("--gpu-workers", type=int, default=5, help="how many of them share the GPU, if there is one")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="settings over the presets")
    parser.add_argument("--root", help="folder of the raw data; else the environment variable NFGNN_DATA")
    parser.add_argument("--out", type=Path, default=Path("results/baselines.json"))
    args = parser.parse_args()
    args.set = {key: parse_value(value) for key, _, value in (item.partition("=") for item in args.set)}
    return args


def parse_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def finished_cells(
    cells: list[Cell], seeds: list[int], args: argparse.Namespace
) -> Iterator[tuple[Cell, list[dict[str, Any]]]]:
    """Every cell with its runs in the order of the seeds, as soon as the last of them has ended."""
    gpu_workers = min(args.gpu_workers, args.workers - 1) if torch.cuda.is_available() else 0
    pools = {
        device: ProcessPoolExecutor(count, get_context("spawn"), torch.set_num_threads, (1,))
        for device, count in (("cpu", args.workers - gpu_workers), ("cuda", gpu_workers))
        if count
    }
    futures: dict[Future[dict[str, Any]], Cell] = {}
    for cell in sorted(
        cells, key=lambda c: c.dataset == "texas"
    ):  # the quick ones last, so that all workers end together
        device = "cuda" if "cuda" in pools and cell.model in ALONG_EDGES and cell.dataset != "texas" else "cpu"
        futures |= {pools[device].submit(run, cell, seed, device, args.set): cell for seed in seeds}
    collected: dict[Cell, list[dict[str, Any]]] = {cell: [] for cell in cells}
    for future in as_completed(futures):
        runs = collected[futures[future]]
        runs.append(future.result())
        if len(runs) == len(seeds):
            yield futures[future], sorted(runs, key=lambda r: seeds.index(r["seed"]))
    for pool in pools.values():
        pool.shutdown()


def run(cell: Cell, seed: int, device: str, settings: dict[str, Any]) -> dict[str, Any]:
    """One split, one training, one score; in a worker."""
    data = split(graph(cell.dataset), cell.protocol, seed)
    classifier = NodeClassifier(cell.model, seed=seed, device=device, **settings).fit(data)
    return {
        "seed": seed,
        "test_accuracy": classifier.score(data, data.test_mask),
        "val_accuracy": classifier.score(data, data.val_mask),
        "epochs": classifier.history_.epochs,
        "seconds": classifier.history_.seconds,
        "device": device,
    }


@lru_cache
def graph(name: str) -> Data:
    return load_dataset(name)


def summary(cell: Cell, seeds: list[int], runs: list[dict[str, Any]], settings: dict[str, Any]) -> dict[str, Any]:
    test = summarise([r["test_accuracy"] for r in runs])
    paper = cell.paper()
    return {
        **cell._asdict(),
        "runs": len(runs),
        "seeds": seeds,
        "test_accuracy": test,
        "val_accuracy": summarise([r["val_accuracy"] for r in runs]),
        "paper": {"mean": paper[0], "ci95": paper[1]} if paper else None,
        "difference": test["mean"] - paper[0] if paper else None,
        "epochs": [r["epochs"] for r in runs],
        "seconds": [r["seconds"] for r in runs],
        "device": runs[0]["device"],
        "config": cell.config(settings),
    }


def machine() -> str:
    gpu = f"{torch.cuda.get_device_name()}, " if torch.cuda.is_available() else ""
    versions = f"torch {torch.__version__}, torch_geometric {torch_geometric.__version__}"
    return f"{gpu}{os.cpu_count()} CPU cores, {versions}, Python {platform.python_version()}"


def percent(value: dict[str, Any] | None) -> str:
    """``81.23 ± 0.45``."""
    if value is None:
        return "–"
    interval = "" if value["ci95"] is None else f" ± {100 * value['ci95']:.2f}"
    return f"{100 * value['mean']:.2f}{interval}"


def points(difference: float | None) -> str:
    return "–" if difference is None else f"{100 * difference:+.2f}"


def line(cell: dict[str, Any]) -> str:
    here, paper = percent(cell["test_accuracy"]), percent(cell["paper"])
    seconds = sum(cell["seconds"]) / cell["runs"]
    return (
        f"{cell['protocol']:5} {cell['dataset']:10} {cell['model']:8} {here:14} paper {paper:14} "
        f"{points(cell['difference']):6}  val {100 * cell['val_accuracy']['mean']:.2f}  "
        f"{seconds:.1f} s a run on {cell['device']}"
    )


def reason(cell: dict[str, Any]) -> str:
    """The difference with its 95 % interval, from both intervals, and what is known of its cause."""
    interval = math.hypot(cell["test_accuracy"]["ci95"] or math.inf, cell["paper"]["ci95"])
    difference = f"{points(cell['difference'])} ± {100 * interval:.2f}."
    if (cause := REASONS.get((cell["model"], cell["dataset"], cell["protocol"]))) is not None:
        return f"{difference} {cause}"
    return difference + (" Not significant." if -cell["difference"] <= interval else " No reason known.")


def write_report(results: dict[str, Any], out: Path) -> None:
    """The table and the single runs, beside the JSON."""
    cells = results["cells"]
    with out.with_suffix(".csv").open("w", newline="") as file:
        fields = ("seed", "test_accuracy", "val_accuracy", "epochs", "seconds")
        writer = csv.writer(file)
        writer.writerow([*Cell._fields, *fields, "device"])
        for c in cells:
            columns = (
                c["seeds"],
                c["test_accuracy"]["values"],
                c["val_accuracy"]["values"],
                c["epochs"],
                c["seconds"],
            )
            writer.writerows([*(c[key] for key in Cell._fields), *row, c["device"]] for row in zip(*columns))
    text = [
        "# Baselines",
        "",
        "Test accuracy in percent, mean ± half-width of the 95 % confidence interval of the mean, beside",
        "the paper's value and the difference in points. Every single value is in `baselines.json` and",
        "`baselines.csv`.",
        "",
        f"- Command: `{results['command']}`",
        f"- Machine: {results['machine']}",
    ]
    for protocol in sorted({c["protocol"] for c in cells}):
        chosen = [c for c in cells if c["protocol"] == protocol]
        counts = sorted({c["runs"] for c in chosen})
        text += ["", f"## `{protocol}`, {' or '.join(map(str, counts))} runs", ""]
        text += ["| dataset | model | here | paper | difference |", "|---|---|---|---|---|"]
        for c in chosen:
            row = (
                c["dataset"],
                c["model"],
                percent(c["test_accuracy"]),
                percent(c["paper"]),
                points(c["difference"]),
            )
            text.append(f"| {' | '.join(row)} |")
    low = [c for c in cells if (c["difference"] or 0) < -TOLERANCE]
    text += ["", f"## More than {100 * TOLERANCE:g} points below the paper", ""]
    text += [f"- {c['model']} on {c['dataset']}, `{c['protocol']}`: {reason(c)}" for c in low] or ["None."]
    out.with_suffix(".md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
