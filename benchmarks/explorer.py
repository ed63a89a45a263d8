"""Time and size of the explorer: ``python benchmarks/explorer.py 20000 200000``."""

import sys
import tempfile
import time
from pathlib import Path

import torch

from nfgnn.data import load_dataset
from nfgnn.explain import build_node_table, select_runs, write_explorer
from nfgnn.progress import Progress
from nfgnn.training import Experiment, Graph, InProcess, RunConfig, run_experiment

torch.set_num_threads(1)
print("| nodes of the graph | edges | nodes on the page | rows, s | page, s | file, MB |")
print("|---|---|---|---|---|---|")
for size in map(int, sys.argv[1:]):
    data = load_dataset("mixed", num_nodes=size)
    config = RunConfig.resolve("NFGNN", {"epochs": 5}, "mixed", "full")
    with tempfile.TemporaryDirectory() as folder:
        run, page = Path(folder) / "run", Path(folder) / "explorer.html"
        experiment = Experiment(Graph.of(data), "full", [0], config)
        run_experiment(experiment, run, InProcess(), Progress(quiet=True))
        start = time.perf_counter()
        table = build_node_table(select_runs(run), data)
        middle = time.perf_counter()
        sample = write_explorer(table, page)
        times = f"{middle - start:.1f} | {time.perf_counter() - middle:.1f}"
        edges = data.edge_index.shape[1] // 2
        megabytes = page.stat().st_size / 1e6
        print(
            f"| {size:,} | {edges:,} | {sample.shown:,} | {times} | {megabytes:.1f} |", flush=True
        )
