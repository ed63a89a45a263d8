"""Search graphs in which labels, edges or features are noise, and check what is reported.

    python benchmarks/auto_noise.py --seeds 5 --max-runs 24 --workers 2

Writes ``benchmarks/results/auto_noise.md``.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from nfgnn.auto import load_portfolio
from nfgnn.paper.search.portfolio_files import portfolio_text
from nfgnn.paper.studies.auto_noise import (
    CASES,
    LEVELS,
    NoiseCase,
    NoiseOutcome,
    markdown,
    run_noise,
)
from nfgnn.training import machine_name

RESULT = Path(__file__).parent / "results" / "auto_noise.md"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5, help="number of graphs of each kind")
    parser.add_argument("--max-runs", type=int, default=24, help="trainings of a search")
    parser.add_argument("--epochs", type=int, default=500, help="longest training at first")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--workers", type=int, default=1, help="searches at the same time")
    options = parser.parse_args()
    command = f"python benchmarks/auto_noise.py --seeds {options.seeds}"
    command += f" --max-runs {options.max_runs} --epochs {options.epochs}"
    with tempfile.TemporaryDirectory() as folder:
        portfolio = Path(folder) / "portfolio.toml"
        portfolio.write_text(shortened_portfolio(options.epochs), encoding="utf-8")
        graphs = [(case, seed) for case in (*CASES, *LEVELS) for seed in range(options.seeds)]
        outcomes = search(graphs, options.max_runs, portfolio, options.workers)
    text = markdown(outcomes, command, machine_name())
    options.out.write_text(text, encoding="utf-8")
    print(text)


def search(
    graphs: Sequence[tuple[NoiseCase, int]], max_runs: int, portfolio: Path, workers: int
) -> list[NoiseOutcome]:
    """Search all graphs, each in one process, and return the outcomes in their order."""
    started = time.perf_counter()
    # A search of small graphs is fastest with one thread.
    os.environ["OMP_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        futures = [pool.submit(search_one, *graph, max_runs, portfolio) for graph in graphs]
        for future in as_completed(futures):
            minutes = (time.perf_counter() - started) / 60
            print(f"{minutes:.1f} min: {future.result()}", flush=True)
    return [future.result() for future in futures]


def search_one(case: NoiseCase, seed: int, max_runs: int, portfolio: Path) -> NoiseOutcome:
    (outcome,) = run_noise([case], [seed], max_runs, portfolio=portfolio)
    return outcome


def shortened_portfolio(epochs: int) -> str:
    """Return the portfolio that ships with shorter trainings."""
    configs = []
    for entry in load_portfolio():
        training = replace(entry.config.training, epochs=epochs)
        configs.append(replace(entry.config, training=training))
    return portfolio_text(configs, ["The portfolio that ships, with shorter trainings."])


if __name__ == "__main__":
    main()
