"""Selection of the runs to explore: one run or two, one of their seeds, and their graph."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.training import best_seed, fingerprint, read_description, read_summary


@dataclass(frozen=True)
class RunSelection:
    """Runs with a common split: the same graph, protocol and seed."""

    folders: list[Path]
    summaries: list[dict[str, Any]]
    seed: int

    def run_names(self) -> list[str]:
        """Return the names of the models, with the run folders where both are the same."""
        models = [str(summary["model"]) for summary in self.summaries]
        if len(set(models)) == len(models):
            return models
        return [f"{model} ({folder.name})" for model, folder in zip(models, self.folders)]

    def check_graph(self, data: Data) -> None:
        """Raise an error unless ``data`` is the graph that the runs were trained on."""
        run = self.folders[0]
        if fingerprint(data) != read_description(run)["fingerprint"]:
            raise UserError(
                f"the graph is not the one that {run} was trained on, or it has changed since: "
                "pass the right one with --dataset"
            )


def select_runs(run: Path, other: Path | None = None, seed: int | None = None) -> RunSelection:
    """Read the run folders and select a seed.

    Args:
        run: a run folder.
        other: a second run to compare with, on the same graph and with the same protocol.
        seed: a seed of both runs; by default the one with the best validation score of ``run``.
    """
    folders = [run] if other is None else [run, other]
    summaries = [read_summary(folder) for folder in folders]
    if other is not None:
        _check_comparable(folders, summaries)
    seeds = summaries[0]["seeds"]
    common = [s for s in seeds if all(s in summary["seeds"] for summary in summaries)]
    if not common:
        raise UserError(f"{run} and {other} have no seed in common, so their splits differ")
    if seed is None:
        seed = best_seed(summaries[0], common)
    if seed not in common:
        place = run if other is None else f"both {run} and {other}"
        choices = ", ".join(map(str, common))
        raise UserError(f"seed {seed} is not in {place}: choose one of {choices}")
    return RunSelection(folders, summaries, seed)


def _check_comparable(folders: list[Path], summaries: list[dict[str, Any]]) -> None:
    first, second = (read_description(folder)["fingerprint"] for folder in folders)
    if first != second:
        raise UserError(
            f"{folders[0]} and {folders[1]} were trained on different graphs: "
            "compare runs on the same graph"
        )
    first, second = (summary["protocol"] for summary in summaries)
    if first != second:
        raise UserError(
            f"{folders[0]} has the protocol '{first}' and {folders[1]} has '{second}': "
            "compare runs of the same protocol, so that both are tested on the same nodes"
        )
