"""Search settings of ScalableNFNet and compare it with NFGNN on the whole graph.

    python benchmarks/scalable_accuracy.py all --root DATA --device cuda --time-limit 800 --out DIR

``search`` trains the candidates of :mod:`scalable_candidates` on split seeds 0 and 1 and the best
four on seeds 2 to 4, and selects by mean validation accuracy. ``report`` trains the selected
settings, or the preset where nothing was searched, on ten splits from seed 1000 and measures the
test accuracy. ``all`` does both: the search ends after 55 % of the time limit.

Every run is written to ``DIR/DATASET.json`` at once, and the same call resumes after an
interruption. ``--jobs`` trains several graphs at the same time. ``DIR/table.md`` compares the
result with NFGNN in ``results/full.md``; ``table`` only writes this file.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from scalable_candidates import DATASETS, candidates

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.training import resolve_device
from nfgnn.training.metrics import summarise

RESULTS = Path(__file__).parent / "results"
FULL_GRAPH = Path(__file__).parents[1] / "results" / "full.md"
SEARCH_SEEDS = range(5)
FINALISTS = 4
SEARCH_SHARE = 0.55  # of the time limit, with the finalists
DRAW_SHARE = 0.38  # of the time limit, for the first two seeds
FIRST_REPORTED = 1000


class Comparison:
    """The runs of one graph, kept in a file.

    Args:
        dataset: the graph.
        options: of the command line.
        deadline: when the last run must be finished, in seconds of ``time.monotonic()``.
    """

    def __init__(self, dataset: str, options: argparse.Namespace, deadline: float) -> None:
        self.dataset = dataset
        self.options = options
        self.began = time.monotonic()
        self.seconds = deadline - self.began
        self.longest = 0.0  # seconds of a run
        self.file = options.out / f"{dataset}.json"
        self.content: dict[str, Any] = {"search": [], "report": {}}
        if self.file.is_file():
            self.content = json.loads(self.file.read_text())
        self.data = load_dataset(dataset, root=options.root)

    def search(self) -> None:
        """Train candidates and select the best by validation accuracy."""
        entries = self._entries()
        share = 1.0 if self.options.what == "search" else SEARCH_SHARE
        for entry in entries:
            for seed in SEARCH_SEEDS[:2]:
                self._validate(entry, seed, share * DRAW_SHARE / SEARCH_SHARE)
        tried = [entry for entry in entries if len(entry["val_accuracy"]) >= 2]
        best = sorted(tried, key=mean_validation, reverse=True)[:FINALISTS]
        for seed in SEARCH_SEEDS[2:]:
            for entry in best:
                self._validate(entry, seed, share)
        if not best:
            return
        # Means are only comparable over the same seeds.
        most = max(len(entry["val_accuracy"]) for entry in best)
        finished = [entry for entry in best if len(entry["val_accuracy"]) == most]
        self.content["selected"] = max(finished, key=mean_validation)
        self._save()

    def report(self) -> None:
        """Measure the test accuracy of the selected settings, or of the preset."""
        selected = self.content.get("selected")
        settings = None if selected is None else selected["settings"]
        report = self.content["report"]
        if not report or report["settings"] != settings:
            report = {"settings": settings, "machine": machine(self.options.device), "runs": {}}
            self.content["report"] = report
        for seed in range(FIRST_REPORTED, FIRST_REPORTED + self.options.runs):
            if str(seed) not in report["runs"] and self._has_time(1.0):
                report["runs"][str(seed)] = self._train(settings, seed, test=True)
                self._save()

    def _entries(self) -> list[dict[str, Any]]:
        """Return the entries of all candidates; those of an earlier call are kept."""
        known = {json.dumps(e["settings"], sort_keys=True): e for e in self.content["search"]}
        for settings in candidates(self.dataset, self.options.candidates):
            if self.options.epochs:
                settings["epochs"] = self.options.epochs
            key = json.dumps(settings, sort_keys=True)
            known.setdefault(key, {"settings": settings, "val_accuracy": {}})
        self.content["search"] = list(known.values())
        return self.content["search"]

    def _validate(self, entry: dict[str, Any], seed: int, share: float) -> None:
        if str(seed) in entry["val_accuracy"] or not self._has_time(share):
            return
        run = self._train(entry["settings"], seed)
        entry["val_accuracy"][str(seed)] = run["val_accuracy"]
        entry["seconds"] = run["seconds"]
        self._save()

    def _train(
        self, settings: dict[str, Any] | None, seed: int, test: bool = False
    ) -> dict[str, float]:
        began = time.monotonic()
        graph = split(self.data, "full", seed)
        preset = "best" if settings is None else "none"
        classifier = NodeClassifier(
            "ScalableNFNet", preset=preset, seed=seed, device=self.options.device, **settings or {}
        ).fit(graph)
        run = {"val_accuracy": classifier.score(graph, graph.val_mask)}
        if test:
            run["test_accuracy"] = classifier.score(graph)
        run["seconds"] = time.monotonic() - began
        self.longest = max(self.longest, run["seconds"])
        numbers = " ".join(f"{key} {value:.4f}" for key, value in run.items())
        print(f"{self.dataset} seed {seed} {numbers}", file=sys.stderr, flush=True)
        return run

    def _has_time(self, share: float) -> bool:
        """Whether another run is finished within a share of the time."""
        return time.monotonic() + self.longest < self.began + share * self.seconds

    def _save(self) -> None:
        partial = self.file.with_suffix(".part")
        partial.write_text(json.dumps(self.content, indent=1) + "\n")
        partial.replace(self.file)


def mean_validation(entry: dict[str, Any]) -> float:
    return summarise(list(entry["val_accuracy"].values()))["mean"]


def machine(device: str) -> str:
    version = torch.__version__.split("+")[0]
    if resolve_device(device).type == "cuda":
        return f"{torch.cuda.get_device_name()}, torch {version}"
    return f"One thread of an {platform.machine()} CPU, torch {version}"


def table(out: Path, datasets: list[str]) -> str:
    """Return the comparison with NFGNN as Markdown."""
    full = full_graph_accuracy()
    lines = [
        "Test accuracy in %, mean ± 95 % confidence interval of the mean, protocol `full`, split",
        "seeds from 1000. NFGNN is that of `results/full.md`. val: mean validation accuracy of the",
        "selected settings on the search seeds; s: mean seconds of a run.",
        "",
        "| dataset | ScalableNFNet | runs | NFGNN | difference | val | s | candidates |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for dataset in datasets:
        file = out / f"{dataset}.json"
        if file.is_file():
            lines.append(table_row(dataset, json.loads(file.read_text()), full[dataset]))
    return "\n".join(lines) + "\n"


def table_row(dataset: str, content: dict[str, Any], full: float) -> str:
    tried = sum(len(entry["val_accuracy"]) >= 2 for entry in content["search"])
    selected = content.get("selected")
    validation = "" if selected is None else f"{100 * mean_validation(selected):.2f}"
    runs = list(content["report"].get("runs", {}).values())
    if len(runs) < 2:
        return f"| {dataset} | | {len(runs)} | {full:.2f} | | {validation} | | {tried} |"
    score = summarise([run["test_accuracy"] for run in runs])
    mean = 100 * score["mean"]
    seconds = summarise([run["seconds"] for run in runs])["mean"]
    return (
        f"| {dataset} | {mean:.2f} ± {100 * score['ci95']:.2f} | {len(runs)} | {full:.2f} "
        f"| {mean - full:+.2f} | {validation} | {seconds:.1f} | {tried} |"
    )


def full_graph_accuracy() -> dict[str, float]:
    """Return the test accuracies of NFGNN (best) in ``results/full.md``, in %."""
    rows = [line.split("|")[1:-1] for line in FULL_GRAPH.read_text().splitlines() if "|" in line]
    names = [cell.strip().lower() for cell in rows[0]]
    values = next(row for row in rows if row[0].strip() == "NFGNN (best)")
    found = {}
    for name, cell in zip(names[1:], values[1:]):
        found[name] = float(cell.replace("*", "").split()[0])
    return found


def run_jobs(options: argparse.Namespace, deadline: float) -> None:
    """Train the graphs in processes of their own, ``options.jobs`` at a time."""
    waiting = list(options.datasets)
    running: list[subprocess.Popen[bytes]] = []
    while waiting or running:
        while waiting and len(running) < options.jobs:
            # Every round of processes gets the same share of the time that is left.
            rounds = -(-len(waiting) // options.jobs)
            seconds = (deadline - time.monotonic()) / rounds
            running.append(start_job(options, waiting.pop(0), seconds))
        running = [process for process in running if process.poll() is None]
        time.sleep(0.2)


def start_job(
    options: argparse.Namespace, dataset: str, seconds: float
) -> "subprocess.Popen[bytes]":
    command = [sys.executable, __file__, options.what, dataset, "--in-process"]
    command += ["--time-limit", str(seconds), "--out", str(options.out)]
    command += ["--device", options.device, "--runs", str(options.runs)]
    command += ["--candidates", str(options.candidates), "--epochs", str(options.epochs)]
    if options.root is not None:
        command += ["--root", str(options.root)]
    return subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["search", "report", "all", "table"])
    parser.add_argument("datasets", nargs="*", help="By default all six.")
    parser.add_argument("--root", type=Path, help="Folder with raw datasets.")
    parser.add_argument("--out", type=Path, default=RESULTS / "scalable_nfnet")
    parser.add_argument("--device", default="cpu", help="auto, cpu or cuda.")
    parser.add_argument("--time-limit", type=float, default=1e9, help="Seconds for all graphs.")
    parser.add_argument("--jobs", type=int, default=1, help="Graphs trained at the same time.")
    parser.add_argument("--runs", type=int, default=10, help="Reported runs per graph.")
    parser.add_argument("--candidates", type=int, default=40, help="Settings per graph.")
    parser.add_argument("--epochs", type=int, default=0, help="Limit epochs, for a quick check.")
    parser.add_argument("--in-process", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.datasets) - set(DATASETS)
    if unknown:
        parser.error(f"unknown {', '.join(sorted(unknown))}: choose from {', '.join(DATASETS)}")
    options.datasets = options.datasets or list(DATASETS)
    return options


def main() -> None:
    options = parse_arguments()
    deadline = time.monotonic() + options.time_limit
    options.out.mkdir(parents=True, exist_ok=True)
    if options.in_process:
        torch.set_num_threads(1)
        comparison = Comparison(options.datasets[0], options, deadline)
        if options.what != "report":
            comparison.search()
        if options.what != "search":
            comparison.report()
        return
    if options.what != "table":
        run_jobs(options, deadline)
    text = table(options.out, options.datasets)
    (options.out / "table.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
