"""Experiments without a progress display."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from nfgnn.progress import Progress
from nfgnn.training import Executor, Experiment, Graph, InProcess, RunConfig, run_experiment


def experiment(data: Data, protocol: str, seeds: Sequence[int], config: RunConfig) -> Experiment:
    """Return an experiment on a graph in memory, on the CPU."""
    return Experiment(Graph.of(data), protocol, list(seeds), config, "cpu")


def run_quietly(
    what: Experiment,
    folder: Path,
    executor: Executor | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Run an experiment and return its summary."""
    quiet = Progress("test", quiet=True)
    summary = run_experiment(what, folder, executor or InProcess(), quiet, resume, overwrite)
    assert summary is not None
    return summary
