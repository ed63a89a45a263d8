"""Search graphs in which labels, edges or features are noise, and check what is reported.

    python benchmarks/auto_noise.py --seeds 5 --max-runs 24

Writes ``benchmarks/results/auto_noise.md``.
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from nfgnn.auto import load_portfolio
from nfgnn.paper.search.portfolio_files import portfolio_text
from nfgnn.paper.studies.auto_noise import CASES, LEVELS, markdown, run_noise
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
    options = parser.parse_args()
    outcomes = []
    started = time.perf_counter()
    command = f"python benchmarks/auto_noise.py --seeds {options.seeds}"
    command += f" --max-runs {options.max_runs} --epochs {options.epochs}"
    with tempfile.TemporaryDirectory() as folder:
        portfolio = Path(folder) / "portfolio.toml"
        portfolio.write_text(shortened_portfolio(options.epochs), encoding="utf-8")
        for outcome in run_noise(
            [*CASES, *LEVELS], range(options.seeds), options.max_runs, portfolio=portfolio
        ):
            outcomes.append(outcome)
            minutes = (time.perf_counter() - started) / 60
            print(f"{minutes:.1f} min: {outcome}", flush=True)
    text = markdown(outcomes, command, machine_name())
    options.out.write_text(text, encoding="utf-8")
    print(text)


def shortened_portfolio(epochs: int) -> str:
    """Return the portfolio that ships with shorter trainings."""
    configs = []
    for entry in load_portfolio():
        training = replace(entry.config.training, epochs=epochs)
        configs.append(replace(entry.config, training=training))
    return portfolio_text(configs, ["The portfolio that ships, with shorter trainings."])


if __name__ == "__main__":
    main()
