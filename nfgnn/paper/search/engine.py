"""What all searches share: samplers that propose settings, and an evaluation that scores them.

A search is a sampler, an evaluation on search seeds, a store of records and a selection rule.
``nfgnn tune`` (:mod:`~nfgnn.paper.search.tune`) and the search of the shipped presets
(:mod:`~nfgnn.paper.search.preset_search`) differ in the sampler and in the rule.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.progress import Progress
from nfgnn.training import RunConfig
from nfgnn.training.cells import machine_name, runs_at_once, train_runs
from nfgnn.training.device import device_name
from nfgnn.training.history import History
from nfgnn.training.records.database import Record, Records
from nfgnn.training.run_folder import fingerprint

Evaluate = Callable[[Sequence[RunConfig]], list[list[Record]]]
"""Returns the runs of every configuration, in the order of the search seeds."""


class Sampler(Protocol):
    """Proposes configurations."""

    def ask(self) -> list[RunConfig]:
        """Return the next batch, whose configurations share the model's shape; empty at the end."""

    def tell(self, runs: Sequence[Sequence[Record]]) -> None:
        """Receive the runs of the last batch."""


def sample(sampler: Sampler, evaluate: Evaluate) -> Iterator[list[list[Record]]]:
    """Evaluate batch after batch and yield the runs of each."""
    while batch := sampler.ask():
        runs = evaluate(batch)
        sampler.tell(runs)
        yield runs


def mean(runs: Sequence[Record], metric: str) -> float:
    """Return the mean of a metric over the runs of a configuration."""
    return sum(run.metrics[metric] for run in runs) / len(runs)


@dataclass(frozen=True)
class Evaluator:
    """Trains configurations on search seeds. Runs that are in the records are not repeated.

    Args:
        data: the graph.
        protocol: how its nodes are split.
        records: where every run is kept.
        progress: advanced by one for every run.
        device: where to train.
        test: whether to score test nodes as well.
    """

    data: Data
    protocol: str
    records: Records
    progress: Progress
    device: str = "auto"
    test: bool = False

    def evaluate(self, configs: Sequence[RunConfig], seeds: Sequence[int]) -> list[list[Record]]:
        """Return the runs of every configuration on the seeds, training those that are missing."""
        missing: list[tuple[RunConfig, int]] = []
        for config in configs:
            found = self._find(config, seeds)
            new = [(config, seed) for seed in seeds if seed not in found]
            missing += [run for run in new if run not in missing]
        known = len(configs) * len(seeds) - len(missing)
        if known:
            self.progress.advance(known, "already trained", known)
        at_once = 1
        if missing:
            at_once = runs_at_once(self.data, self.protocol, configs[0], self.device)
        for start in range(0, len(missing), at_once):
            part = missing[start : start + at_once]
            self.records.add(self._train(part))
            self.progress.advance(len(part), part[0][0].model, len(part))
        found_all = [self._find(config, seeds) for config in configs]
        return [[found[seed] for seed in seeds] for found in found_all]

    def _find(self, config: RunConfig, seeds: Sequence[int]) -> dict[int, Record]:
        graph = fingerprint(self.data)
        return self.records.find(graph, self.protocol, config.to_dict(), seeds)

    def _train(self, runs: Sequence[tuple[RunConfig, int]]) -> list[Record]:
        """Train runs as one computation.

        If one of them diverges, they are trained one by one, and that one scores nothing.
        """
        try:
            return train_runs(
                self.data, self.protocol, runs, self.device, self.test, self._on_epoch
            )
        except UserError as error:
            if "never a number" not in str(error):
                raise
        if len(runs) > 1:
            return [record for run in runs for record in self._train([run])]
        config, seed = runs[0]
        metrics = {"val_accuracy": 0.0, "val_loss": 1e9, "seconds": 0.0, "epochs": 0}
        if self.test:
            metrics["test_accuracy"] = 0.0
        record = Record(
            dataset=str(self.data.get("name") or "graph"),
            fingerprint=fingerprint(self.data),
            protocol=self.protocol,
            seed=seed,
            config=config.to_dict(),
            metrics=metrics,
            device=device_name(self.device),
            machine=machine_name(),
        )
        return [record]

    def _on_epoch(self, history: History) -> None:
        accuracy = 100 * history.val_accuracy[-1]
        self.progress.status(f"epoch {history.epochs}, validation accuracy {accuracy:.1f} %")
