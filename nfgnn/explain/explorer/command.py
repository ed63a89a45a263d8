"""What ``nfgnn explore`` does, with a word about how far it is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from torch_geometric.data import Data

from nfgnn.explain.explorer.page import write_page
from nfgnn.explain.explorer.rows import explorer_rows
from nfgnn.explain.explorer.selection import find_subject

Load = Callable[[dict[str, Any] | None], Data]
"""Loads the graph, given what the run folder says about its source."""


def explore_run(
    run: Path,
    output: Path,
    other: Path | None,
    seed: int | None,
    most_nodes: int,
    device: str,
    load: Load,
) -> None:
    """Write the explorer of a run, compared with another one if it is given."""
    subject = find_subject(run, other, seed)
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        reading = progress.add_task("reading the graph", total=None)
        data = load(subject.source)
        progress.remove_task(reading)
        placing = progress.add_task("placing the nodes", total=None)
        rows = explorer_rows(
            subject,
            data,
            device,
            lambda step, steps: progress.update(placing, completed=step, total=steps),
        )
        sample = write_page(rows, output, most_nodes)
    thinned = (
        ""
        if sample.shown == data.num_nodes
        else f", a random sample of {sample.shown:,} of {data.num_nodes:,} nodes"
    )
    size = output.stat().st_size / 1e6
    console.print(
        f"{output} written ({size:.1f} MB{thinned}): open it in a browser",
        highlight=False,
        soft_wrap=True,
    )
