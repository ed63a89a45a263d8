"""What is to be explored: a run or two, one of their seeds, and the graph they were trained on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from nfgnn.data import canonical_name
from nfgnn.errors import UserError
from nfgnn.training import read_summary
from nfgnn.training.run_folder import fingerprint, read_description


@dataclass(frozen=True)
class Subject:
    """Runs with one split in common: the same graph, protocol and seed."""

    folders: list[Path]
    summaries: list[dict[str, Any]]
    seed: int

    @property
    def source(self) -> dict[str, Any] | None:
        """Where the graph of the first run came from; of a run that does not say so, its dataset if that is a name."""
        summary = self.summaries[0]
        source: dict[str, Any] | None = summary.get("source")
        return source or (
            {"dataset": summary["dataset"]} if canonical_name(summary["dataset"]) else None
        )

    def names(self) -> list[str]:
        """The models; with the name of the run folder where they are the same."""
        models = [str(summary["model"]) for summary in self.summaries]
        distinct = len(set(models)) == len(models)
        return (
            models
            if distinct
            else [f"{model} ({folder.name})" for model, folder in zip(models, self.folders)]
        )

    def check_graph(self, data: Data) -> None:
        """Refuse another graph than the one of the training."""
        if fingerprint(data) != read_description(self.folders[0])["fingerprint"]:
            raise UserError(
                f"the graph is not the one that {self.folders[0]} was trained on, or it has been changed since: "
                "name the right one with --dataset"
            )


def find_subject(run: Path, other: Path | None = None, seed: int | None = None) -> Subject:
    """Read the run folders and choose the seed: the given one, else the best by the first run's validation accuracy."""
    folders = [run] if other is None else [run, other]
    summaries = [read_summary(folder) for folder in folders]
    _check_comparable(folders, summaries)
    seeds, values = summaries[0]["seeds"], summaries[0]["val_accuracy"]["values"]
    common = [s for s in seeds if all(s in summary["seeds"] for summary in summaries)]
    if not common:
        raise UserError(
            f"{run} and {other} have no seed in common, so they cannot be compared on one split"
        )
    if seed is None:
        seed = max(common, key=lambda s: values[seeds.index(s)])
    if seed not in common:
        where = run if other is None else f"{run} and {other} together"
        raise UserError(
            f"there is no seed {seed} in {where}: choose one of {', '.join(map(str, common))}"
        )
    return Subject(folders, summaries, seed)


def _check_comparable(folders: list[Path], summaries: list[dict[str, Any]]) -> None:
    if len(folders) < 2:
        return
    first, second = (read_description(folder) for folder in folders)
    if first["fingerprint"] != second["fingerprint"]:
        raise UserError(
            f"{folders[0]} and {folders[1]} were trained on different graphs: compare runs on one graph"
        )
    protocols = [summary["protocol"] for summary in summaries]
    if protocols[0] != protocols[1]:
        raise UserError(
            f"{folders[0]} was split by '{protocols[0]}' and {folders[1]} by '{protocols[1]}': "
            "compare runs of one protocol, so that both are tested on the same nodes"
        )
