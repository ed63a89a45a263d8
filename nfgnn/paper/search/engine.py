"""What all searches share: the evaluation of configurations on search seeds.

A search proposes configurations, evaluates them, keeps every run as a record, and selects the best.
``nfgnn tune`` (:mod:`~nfgnn.paper.search.tune`) and the search of the shipped presets
(:mod:`~nfgnn.paper.search.preset_search`) differ in what they propose and in the rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from nfgnn.errors import UserError
from nfgnn.progress import Progress
from nfgnn.training import (
    Executor,
    Failure,
    Graph,
    InProcess,
    Record,
    RecordResults,
    Records,
    Results,
    RunConfig,
    RunSpec,
    UntilDeadline,
    device_name,
    execute,
    machine_name,
    raise_first,
)


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
        executor: where runs execute; by default one after the other in this process.
    """

    graph: Graph
    protocol: str
    records: Records
    progress: Progress
    device: str = "auto"
    score_test: bool = False
    executor: Executor = field(default_factory=InProcess)

    def evaluate(self, configs: Sequence[RunConfig], seeds: Sequence[int]) -> list[list[Record]]:
        """Return the runs of every configuration on the seeds, training those that are missing.

        A run that diverges gets the worst possible scores. Configurations that share the model's
        shape are trained together where the device allows it.
        """
        specs = []
        for config in configs:
            specs += [RunSpec(self.graph, self.protocol, seed, config) for seed in seeds]
        results = RecordResults(self.records, self.device, self.score_test)
        recorded = len(specs) - len(results.missing(specs))
        if recorded:
            self.progress.advance(recorded, "already trained", recorded)
        diverged = self.run(specs, results)
        worst = [worst_record(failure.spec, self.device, self.score_test) for failure in diverged]
        self.records.add(worst)
        runs = []
        for config in configs:
            settings = config.to_dict()
            found = self.records.find(self.graph.fingerprint, self.protocol, settings, seeds)
            runs.append([found[seed] for seed in seeds])
        return runs

    def run(self, specs: Sequence[RunSpec], results: Results) -> list[Failure]:
        """Execute runs and return those that diverged. Other failures are raised."""
        failures = execute(
            specs, results, self.executor, self.progress, self.device, start_progress=False
        )
        raise_first([failure for failure in failures if not failure.diverged])
        return failures

    def mean(self, runs: Sequence[Record], metric: str) -> float:
        """Return the mean of a metric over the runs of a configuration."""
        for run in runs:
            if metric not in run.metrics:
                raise UserError(
                    f"{self.records.path}: the recorded run of seed {run.seed} on {run.dataset} "
                    f"has no {metric}, because an earlier version made it or the file was changed; "
                    "keep the file, and choose another one with --storage"
                )
        return sum(run.metrics[metric] for run in runs) / len(runs)


def train_until(
    specs: Sequence[RunSpec],
    records: Records,
    executor: UntilDeadline,
    progress: Progress,
    device: str,
) -> list[str]:
    """Train the runs that are not recorded, as far as the executor has time.

    A run that diverges is recorded with the worst possible scores.

    Returns:
        A line for every run that failed otherwise.
    """
    results = RecordResults(records, device)
    try:
        failures = execute(specs, results, executor, progress, device, start_progress=False)
    except torch.OutOfMemoryError:
        # The memory of a run is estimated by a forward pass, which may not fit either.
        return [f"{specs[0].label}: does not fit into the GPU's memory"]
    finally:
        # Other processes may share the GPU.
        torch.cuda.empty_cache()
    diverged = [failure for failure in failures if failure.diverged]
    records.add([worst_record(failure.spec, device, True) for failure in diverged])
    return [failure.line for failure in failures if not failure.diverged]


def worst_record(spec: RunSpec, device: str, score_test: bool) -> Record:
    """Return the record of a run that diverged.

    Args:
        spec: the run.
        device: where it was trained.
        score_test: whether the test nodes get a score, too.
    """
    metrics = {"val_accuracy": 0.0, "val_loss": 1e9, "seconds": 0.0, "epochs": 0}
    worst = 0.0 if spec.metric.greater_is_better else 1e9
    metrics.setdefault(f"val_{spec.metric.name}", worst)
    if score_test:
        metrics["test_accuracy"] = 0.0
        metrics.setdefault(f"test_{spec.metric.name}", worst)
    return Record(
        dataset=spec.graph.name,
        fingerprint=spec.graph.fingerprint,
        protocol=spec.protocol,
        seed=spec.seed,
        config=spec.config.to_dict(),
        metrics=metrics,
        device=device_name(device),
        machine=machine_name(),
    )
