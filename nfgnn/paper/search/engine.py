"""What all searches share: samplers that propose settings, and an evaluation that scores them.

A search is a sampler, an evaluation on search seeds, a store of records and a selection rule.
``nfgnn tune`` (:mod:`~nfgnn.paper.search.tune`) and the search of the shipped presets
(:mod:`~nfgnn.paper.search.preset_search`) differ in the sampler and in the rule.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from nfgnn.progress import Progress
from nfgnn.training import (
    Graph,
    InProcess,
    Record,
    RecordResults,
    Records,
    RunConfig,
    RunSpec,
    device_name,
    execute,
    machine_name,
    raise_first,
)

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
        graph: the graph.
        protocol: how its nodes are split.
        records: where every run is kept.
        progress: advanced by one for every run.
        device: where to train.
        score_test: whether to score test nodes as well.
    """

    graph: Graph
    protocol: str
    records: Records
    progress: Progress
    device: str = "auto"
    score_test: bool = False

    def evaluate(self, configs: Sequence[RunConfig], seeds: Sequence[int]) -> list[list[Record]]:
        """Return the runs of every configuration on the seeds, training those that are missing.

        A run that diverges gets the worst possible scores.
        """
        specs = [
            RunSpec(self.graph, self.protocol, seed, config) for config in configs for seed in seeds
        ]
        results = RecordResults(self.records, self.device, self.score_test)
        recorded = len(specs) - len(results.missing(specs))
        if recorded:
            self.progress.advance(recorded, "already trained", recorded)
        failures = execute(
            specs, results, InProcess(), self.progress, self.device, start_progress=False
        )
        raise_first([failure for failure in failures if not failure.diverged])
        self.records.add([self._worst(failure.spec) for failure in failures])
        runs = []
        for config in configs:
            settings = config.to_dict()
            found = self.records.find(self.graph.fingerprint, self.protocol, settings, seeds)
            runs.append([found[seed] for seed in seeds])
        return runs

    def _worst(self, spec: RunSpec) -> Record:
        """Return the record of a run that diverged."""
        metrics = {"val_accuracy": 0.0, "val_loss": 1e9, "seconds": 0.0, "epochs": 0}
        if self.score_test:
            metrics["test_accuracy"] = 0.0
        return Record(
            dataset=spec.graph.name,
            fingerprint=spec.graph.fingerprint,
            protocol=spec.protocol,
            seed=spec.seed,
            config=spec.config.to_dict(),
            metrics=metrics,
            device=device_name(self.device),
            machine=machine_name(),
        )
