"""The runs of the study of node gates: the paired search, then the report runs.

Every run is a record of one database, and a recorded run is not repeated, so an interrupted study
resumes where it stopped. Several processes may share the database.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from nfgnn.analysis import accuracy_by_homophily, local_homophily
from nfgnn.paper.search.engine import worst_record
from nfgnn.paper.studies import node_gate_plan as plan
from nfgnn.paper.studies.node_gate_oracle import ORACLE, OracleConfig, OracleSpec
from nfgnn.paper.studies.node_gate_plan import StudyGraph
from nfgnn.progress import Progress
from nfgnn.training import (
    Executor,
    Record,
    RecordResults,
    Records,
    RunConfig,
    RunResult,
    RunSpec,
    UntilDeadline,
    execute,
    raise_first,
)

INTERVALS = 5
"""Equal intervals of local homophily from 0 to 1."""
Runs = dict[int, Record]
"""Recorded runs of one configuration by seed."""


@dataclass(frozen=True)
class Winner:
    """The configuration of a network that the validation nodes have selected."""

    draw: int
    """Its number among all draws of the graph."""
    settings: dict[str, Any]
    config: RunConfig
    validation: float
    """Mean score on validation nodes over all search seeds."""


def run_node_gate_study(
    graphs: Sequence[str] | None,
    device: str,
    records: Records,
    time_limit: float | None = None,
    root: Path | None = None,
    progress: Progress | None = None,
    gates: Sequence[str] | None = None,
) -> list[str]:
    """Make the runs of the study that are not recorded yet, graph by graph.

    Args:
        graphs: names of graphs of the study; all of them by default.
        device: where to train.
        records: where every run is kept.
        time_limit: seconds after which training stops. Finished runs are kept.
        root: folder of raw datasets.
        progress: the display.
        gates: the gates to compare with the network without one; all of them by default.

    Returns:
        One line for every graph that is not complete.
    """
    progress = progress or Progress("node-gates", quiet=True)
    executor = UntilDeadline(math.inf if time_limit is None else time_limit)
    networks = plan.networks(gates)
    unfinished = []
    for graph in plan.find_graphs(graphs):
        runner = GraphRunner(graph, networks, records, executor, progress, device, root)
        if not (runner.search() and runner.report()):
            unfinished.append(f"{graph.name}: the time limit was reached before all runs were made")
    return unfinished


class GraphRunner:
    """The runs of the study on one graph.

    Args:
        graph: the graph.
        networks: what is compared, of :func:`~nfgnn.paper.studies.node_gate_plan.networks`.
        records: where every run is kept.
        executor: where runs execute, and until when.
        progress: the display.
        device: where to train.
        root: folder of raw datasets.
    """

    def __init__(
        self,
        graph: StudyGraph,
        networks: Sequence[str],
        records: Records,
        executor: Executor,
        progress: Progress,
        device: str,
        root: Path | None = None,
    ) -> None:
        self.graph = graph
        self.networks = networks
        self.records = records
        self.executor = executor
        self.progress = progress
        self.device = device
        self.root = root

    def search(self) -> bool:
        """Train all draws, then the finalists. Return whether the time has sufficed."""
        results = RecordResults(self.records, self.device, score_test=False)
        specs = []
        for structure in plan.draws(self.graph):
            # All networks take their turn, so that an interrupted search stays paired.
            for network in self.networks:
                configs = [plan.config(network, settings) for settings in structure]
                specs += self._specs(self.graph.protocol, configs, plan.FEW_SEEDS)
        if not self._train("search, all draws", specs, results):
            return False
        specs = []
        for network in self.networks:
            best = finalists(self.graph, network, self.records, self.root)
            configs = [config for _, config in best]
            specs += self._specs(self.graph.protocol, configs, self.graph.search_seeds)
        return self._train("search, finalists", specs, results)

    def report(self) -> bool:
        """Make the report runs of all winners. Return whether the time has sufficed."""
        winners = select_winners(self.graph, self.records, self.root)
        specs: list[RunSpec] = []
        for protocol in (self.graph.protocol, *self.graph.shifts):
            for network in networks_of(self.graph, protocol, self.networks):
                config = winner_of(network, winners).config
                runs = self._specs(protocol, [config], self.graph.report_seeds)
                if network == ORACLE:
                    specs += [OracleSpec.of(run) for run in runs]
                else:
                    specs += runs
        if self.graph.is_generated:
            # Every seed has a graph of its own, so its runs share no computation. All networks take
            # their turn, and an interrupted report has the same seeds of all of them.
            specs.sort(key=lambda spec: spec.seed)
        return self._train("report", specs, ReportResults(self.records, self.device))

    def _specs(self, protocol: str, configs: Sequence[RunConfig], seeds: range) -> list[RunSpec]:
        specs = []
        for config in configs:
            for seed in seeds:
                specs.append(RunSpec(self.graph.graph(seed, self.root), protocol, seed, config))
        return specs

    def _train(self, stage: str, specs: Sequence[RunSpec], results: RecordResults) -> bool:
        """Train the runs that are not recorded. Return whether all are recorded then."""
        missing = results.missing(specs)
        if not missing:
            return True
        self.progress.say(f"{self.graph.name}: {stage}, {len(missing)} runs")
        failures = execute(missing, results, self.executor, self.progress, self.device)
        raise_first([failure for failure in failures if not failure.diverged])
        score_test = results.score_test
        worst = [worst_record(failure.spec, self.device, score_test) for failure in failures]
        self.records.add(worst)
        return not results.missing(specs)


class ReportResults(RecordResults):
    """Records of report runs, with the test nodes by interval of local homophily."""

    def in_worker(self) -> "ReportResults":
        return ReportResults(None, self.device, self.score_test)

    def pack(self, result: RunResult) -> Record:
        record = super().pack(result)
        return replace(record, metrics={**record.metrics, **_counts(result)})


def interval_names(interval: int) -> tuple[str, str]:
    """Return the metrics with the test nodes of an interval, and with the correct ones of them."""
    return f"test_nodes_homophily_{interval}", f"test_correct_homophily_{interval}"


def _counts(result: RunResult) -> dict[str, int]:
    """Return the numbers of training and test nodes, and of correct ones by local homophily."""
    data = result.data
    test = data.test_mask & (data.y >= 0)
    correct = result.classifier.predict(data)[test] == data.y[test]
    h = local_homophily(data.edge_index, data.y)[test]
    found = accuracy_by_homophily(correct, h, INTERVALS)
    right = torch.nan_to_num(found.accuracy * found.nodes, 0.0).round().long()
    counts = {"train_nodes": int(data.train_mask.sum()), "test_nodes": int(test.sum())}
    for interval in range(INTERVALS):
        nodes, hits = interval_names(interval)
        counts[nodes] = int(found.nodes[interval])
        counts[hits] = int(right[interval])
    return counts


def networks_of(graph: StudyGraph, protocol: str, searched: Iterable[str]) -> list[str]:
    """Return the networks that are reported on a graph under a protocol.

    Args:
        graph: the graph.
        protocol: its own one, or one of its shifts, for which the MLP is left out.
        searched: the networks that were searched.
    """
    if protocol != graph.protocol:
        return [network for network in searched if network != plan.MLP]
    return [*searched, *([ORACLE] if graph.is_generated else [])]


def winner_of(network: str, winners: dict[str, Winner]) -> Winner:
    """Return the settings of a network. The oracle takes those selected without a gate."""
    return winners[plan.NONE if network == ORACLE else network]


def finalists(
    graph: StudyGraph, network: str, records: Records, root: Path | None
) -> list[tuple[int, RunConfig]]:
    """Return the draws with the best mean validation score on the first search seeds.

    Returns:
        Their numbers and configurations, the best first; nothing if a draw is not recorded.
    """
    scored = []
    for number, settings in enumerate(all_draws(graph)):
        config = plan.config(network, settings)
        score = validation_score(graph, config, plan.FEW_SEEDS, records, root)
        if score is None:
            return []
        scored.append((-score, number, config))
    # Equal scores are ordered by the number of the draw.
    best = sorted(scored, key=lambda entry: entry[:2])[: plan.FINALISTS]
    return [(number, config) for _, number, config in best]


def select_winners(
    graph: StudyGraph, records: Records, root: Path | None = None
) -> dict[str, Winner]:
    """Return the finalist with the best mean validation score.

    Networks whose search is not complete are left out.
    """
    winners = {}
    for network in plan.networks():
        winner = _select_winner(graph, network, records, root)
        if winner is not None:
            winners[network] = winner
    return winners


def _select_winner(
    graph: StudyGraph, network: str, records: Records, root: Path | None
) -> Winner | None:
    scored = []
    for number, config in finalists(graph, network, records, root):
        score = validation_score(graph, config, graph.search_seeds, records, root)
        if score is None:
            return None
        scored.append((-score, number, config))
    if not scored:
        return None
    # Equal scores are decided by the number of the draw.
    score, number, config = min(scored, key=lambda entry: entry[:2])
    return Winner(number, all_draws(graph)[number], config, -score)


def all_draws(graph: StudyGraph) -> list[dict[str, Any]]:
    """Return the draws of all structures in one list."""
    return [settings for structure in plan.draws(graph) for settings in structure]


def validation_score(
    graph: StudyGraph, config: RunConfig, seeds: range, records: Records, root: Path | None
) -> float | None:
    """Return the mean of the official metric on validation nodes; ``None`` if a run is missing.

    Means that only differ by rounding are equal.
    """
    found = find_runs(graph, graph.protocol, config, seeds, records, root)
    if len(found) < len(seeds):
        return None
    scores = [run.metrics[f"val_{graph.metric}"] for run in found.values()]
    return round(sum(scores) / len(scores), 6)


def report_runs(
    graph: StudyGraph,
    protocol: str,
    network: str,
    winners: dict[str, Winner],
    records: Records,
    root: Path | None,
) -> Runs:
    """Return the report runs of a network."""
    config = winner_of(network, winners).config
    if network == ORACLE:
        config = OracleConfig.of(config)
    return find_runs(graph, protocol, config, graph.report_seeds, records, root)


def find_runs(
    graph: StudyGraph,
    protocol: str,
    config: RunConfig,
    seeds: range,
    records: Records,
    root: Path | None,
) -> Runs:
    """Return the recorded runs of a configuration by seed. Real graphs need not be available."""
    settings = config.to_dict()
    seeds_of: dict[str, list[int]] = {}
    for seed in seeds:
        fingerprint = graph.fingerprint(seed, records, root)
        if fingerprint is not None:
            seeds_of.setdefault(fingerprint, []).append(seed)
    found: Runs = {}
    for fingerprint, own in seeds_of.items():
        found |= records.find(fingerprint, protocol, settings, own)
    return found
