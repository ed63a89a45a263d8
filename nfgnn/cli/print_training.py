"""What ``nfgnn train`` shows at its end."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from torch_geometric.data import Data

from nfgnn.analysis.homophily import local_homophily
from nfgnn.explain import draw_run, run_rows


def write_figure(run: Path, data: Data) -> Path:
    """Learning curves and learned filters, as ``RUN/run.png``."""
    path = run / "run.png"
    links = data.get("edge_index")  # a store has none
    homophily = (
        np.full(data.num_nodes, np.nan) if links is None else local_homophily(links, data.y).numpy()
    )
    draw_run(run_rows(run, homophily), path)
    return path


def print_summary(summary: dict[str, Any], figure: Path) -> None:
    """A small table: every run, the mean and its confidence interval; then where things lie."""
    table = Table(
        title=f"{summary['model']} on {summary['dataset']}, protocol {summary['protocol']}"
    )
    scores = [
        key
        for key in summary
        if key.endswith(("_accuracy", "_roc_auc")) and not key.startswith("train")
    ]
    scores.sort(reverse=True, key=lambda key: key.startswith(("test", "observed", "unobserved")))
    table.add_column("seed", justify="right")
    for key in scores:
        table.add_column(key.replace("_", " ") + " %", justify="right")
    table.add_column("epochs", justify="right")
    for i, seed in enumerate(summary["seeds"]):
        values = [f"{100 * summary[key]['values'][i]:.2f}" for key in scores]
        table.add_row(str(seed), *values, str(summary["epochs"][i]))
    table.add_section()
    table.add_row("mean", *(f"[bold]{_interval(summary[key])}[/bold]" for key in scores), "")
    console = Console()
    console.print(table)
    console.print(
        f"± is the 95 % confidence interval of the mean. {summary['epoch_ms']:.1f} ms per epoch."
    )
    console.print(f"run folder  {summary['run']}\npicture     {figure}", highlight=False)


def _interval(score: dict[str, Any]) -> str:
    interval = f" ± {100 * score['ci95']:.2f}" if score["ci95"] is not None else ""
    return f"{100 * score['mean']:.2f}{interval}"
