"""The runs of the study of node gates: the paired search, then the report runs.

Every run is a record of one database, and a recorded run is not repeated, so an interrupted study
resumes where it stopped. Several processes may share the database.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from nfgnn.analysis import accuracy_by_homophily, local_homophily
from nfgnn.paper.find_graph import find_fingerprint
from nfgnn.paper.search.engine import Evaluator, run_specs, worst_record
from nfgnn.paper.studies import node_gate_plan as plan
from nfgnn.paper.studies.node_gate_oracle import ORACLE, OracleConfig, OracleSpec
from nfgnn.paper.studies.node_gate_plan import StudyGraph
from nfgnn.progress import Progress
from nfgnn.training import Record, RecordResults, Records, RunConfig, RunResult, RunSpec

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
) -> list[str]:
    """Make the runs of the study that are not recorded yet, graph by graph.

    Args:
        graphs: names of graphs of the study; all of them by default.
        device: where to train.
        records: where every run is kept.
        time_limit: seconds after which no further computation is started. The one that runs then
            is finished.
        root: folder of raw datasets.
        progress: the display.

    Returns:
        One line for every graph that is not complete.
    """
    progress = progress or Progress("node-gates", quiet=True)
    deadline = None if time_limit is None else monotonic() + time_limit
    unfinished = []
    for graph in plan.find_graphs(graphs):
        runner = GraphRunner(graph, records, progress, device, root, deadline)
        if not (runner.search() and runner.report()):
            unfinished.append(f"{graph.name}: the time limit was reached before all runs were made")
    return unfinished


class GraphRunner:
    """The runs of the study on one graph.

    Args:
        graph: the graph.
        records: where every run is kept.
        progress: the display.
        device: where to train.
        root: folder of raw datasets.
        deadline: value of the monotonic clock after which nothing is started.
    """

    def __init__(
        self,
        graph: StudyGraph,
        records: Records,
        progress: Progress,
        device: str,
        root: Path | None = None,
        deadline: float | None = None,
    ) -> None:
        self.graph = graph
        self.records = records
        self.progress = progress
        self.device = device
        self.root = root
        self.deadline = deadline

    def search(self) -> bool:
        """Train all draws, then the finalists. Return whether the time has sufficed."""
        for settings in plan.draws(self.graph):
            # All networks take their turn, so that an interrupted search stays paired.
            for network in plan.networks():
                configs = [plan.config(network, drawn) for drawn in settings]
                if not self._evaluate(network, configs, plan.FEW_SEEDS):
                    return False
        for network in plan.networks():
            for _, config in finalists(self.graph, network, self.records, self.root):
                if not self._evaluate(network, [config], plan.SEARCH_SEEDS):
                    return False
        return True

    def report(self) -> bool:
        """Make the report runs of all winners. Return whether the time has sufficed."""
        winners = select_winners(self.graph, self.records, self.root)
        for protocol in (self.graph.protocol, *self.graph.shifts):
            for network in networks_of(self.graph, protocol):
                if not self._report(network, protocol, winners):
                    return False
        return True

    def _report(self, network: str, protocol: str, winners: dict[str, Winner]) -> bool:
        config = winner_of(network, winners).config
        specs = [self._spec(protocol, seed, config) for seed in plan.REPORT_SEEDS]
        if network == ORACLE:
            specs = [OracleSpec.of(spec) for spec in specs]
        results = ReportResults(self.records, self.device)
        if results.missing(specs) and self._is_late():
            return False
        self._start(f"{network}, {protocol}, report", len(specs))
        diverged = run_specs(specs, results, self.progress, self.device)
        worst = [worst_record(failure.spec, self.device, True) for failure in diverged]
        self.records.add(worst)
        return True

    def _evaluate(self, network: str, configs: Sequence[RunConfig], seeds: range) -> bool:
        """Train configurations on search seeds unless the time is over."""
        complete = all(
            len(find_runs(self.graph, self.graph.protocol, config, seeds, self.records, self.root))
            == len(seeds)
            for config in configs
        )
        if complete:
            return True
        if self._is_late():
            return False
        self._start(f"{network}, search", len(configs) * len(seeds))
        # Generated graphs differ between seeds.
        parts = [[seed] for seed in seeds] if self.graph.is_generated else [list(seeds)]
        for part in parts:
            graph = self.graph.graph(part[0], self.root)
            protocol = self.graph.protocol
            evaluator = Evaluator(graph, protocol, self.records, self.progress, self.device)
            evaluator.evaluate(configs, part)
        return True

    def _spec(self, protocol: str, seed: int, config: RunConfig) -> RunSpec:
        return RunSpec(self.graph.graph(seed, self.root), protocol, seed, config)

    def _is_late(self) -> bool:
        return self.deadline is not None and monotonic() >= self.deadline

    def _start(self, label: str, runs: int) -> None:
        self.progress.say(f"{self.graph.name}: {label}, {runs} runs")
        self.progress.start(runs, runs)


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


def networks_of(graph: StudyGraph, protocol: str) -> tuple[str, ...]:
    """Return the networks that are reported on a graph under a protocol."""
    if protocol != graph.protocol:
        return (plan.NONE, *plan.gates())
    if graph.is_generated:
        return (*plan.networks(), ORACLE)
    return plan.networks()


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
    """Return the finalist with the best mean validation score for every network.

    The result is empty while the search of any network is incomplete.
    """
    drawn = all_draws(graph)
    winners = {}
    for network in plan.networks():
        scored = []
        for number, config in finalists(graph, network, records, root):
            score = validation_score(graph, config, plan.SEARCH_SEEDS, records, root)
            if score is None:
                return {}
            scored.append((-score, number, config))
        if not scored:
            return {}
        score, number, config = min(scored, key=lambda entry: entry[:2])
        winners[network] = Winner(number, drawn[number], config, -score)
    return winners


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
    return find_runs(graph, protocol, config, plan.REPORT_SEEDS, records, root)


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
    if graph.is_generated:
        found: Runs = {}
        for seed in seeds:
            fingerprint = _generated_fingerprint(graph, seed)
            found |= records.find(fingerprint, protocol, settings, [seed])
        return found
    known = find_fingerprint(graph.name, root, records)
    return {} if known is None else records.find(known, protocol, settings, seeds)


@lru_cache(maxsize=256)
def _generated_fingerprint(graph: StudyGraph, seed: int) -> str:
    return graph.graph(seed, None).fingerprint
