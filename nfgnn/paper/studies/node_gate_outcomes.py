"""The outcomes of the study of node gates, computed from its records.

The primary outcome is the difference of every gate to the network without a gate, paired over the
report seeds. ``docs/studies/node-gates.md`` defines all outcomes and the rule of the verdict.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nfgnn.paper.statistics import holm, paired, paired_overlapping, signed_rank
from nfgnn.paper.studies import node_gate_plan as plan
from nfgnn.paper.studies.node_gate_oracle import ORACLE
from nfgnn.paper.studies.node_gate_plan import StudyGraph
from nfgnn.paper.studies.node_gate_runs import (
    INTERVALS,
    Runs,
    Winner,
    all_draws,
    interval_names,
    networks_of,
    report_runs,
    select_winners,
    validation_score,
    winner_of,
)
from nfgnn.training import Record, Records, summarise

SIGNIFICANT = 0.05
LEAST_GRAPHS = 3
"""Number of real graphs on which a gate must gain."""
LEAST_NODES = 50
"""Test nodes over all report seeds that an interval of local homophily must have."""


@dataclass(frozen=True)
class NetworkOutcome:
    """The report runs of one network on one graph, under one protocol."""

    draw: int
    settings: Mapping[str, Any]
    validation: float
    seeds: tuple[int, ...]
    scores: tuple[float, ...]
    """The official metric on test nodes, by seed."""
    dead: int
    """Number of runs that diverged, or never rose above chance."""
    intervals: tuple[tuple[float | None, ...], ...]
    """Accuracy in every interval of local homophily, by interval and seed."""
    interval_nodes: tuple[int, ...]
    """Number of test nodes in every interval, over all seeds."""

    @property
    def summary(self) -> dict[str, Any]:
        return summarise(self.scores)

    def interval_accuracy(self, interval: int) -> float | None:
        """Return the mean accuracy in an interval, ``None`` if it has too few nodes."""
        defined = [value for value in self.intervals[interval] if value is not None]
        if self.interval_nodes[interval] < LEAST_NODES or not defined:
            return None
        return sum(defined) / len(defined)

    @property
    def worst_interval(self) -> float | None:
        """Lowest accuracy over the intervals."""
        found = [self.interval_accuracy(interval) for interval in range(INTERVALS)]
        return min((value for value in found if value is not None), default=None)

    def relative_to(self, other: "NetworkOutcome", interval: int) -> dict[str, Any] | None:
        """Return the summary of the differences to another network on the same nodes."""
        if self.interval_accuracy(interval) is None:
            return None
        pairs = zip(self.intervals[interval], other.intervals[interval])
        differences = [a - b for a, b in pairs if a is not None and b is not None]
        return summarise(differences) if differences else None


@dataclass
class GateComparison:
    """A gate against the network without one."""

    gate: str
    confirmatory: bool
    difference: float
    ci95: float | None
    p: float | None
    runs: int
    p_signed_rank: float | None
    p_overlapping: float | None
    """P value of the t-test for overlapping training sets."""
    same_settings: dict[str, Any]
    """Differences in validation score over the paired draws."""
    p_holm: float | None = None
    """Corrected over all tests of the family; ``None`` outside of it."""
    oracle_share: float | None = None
    """Share of the distance to the oracle, if the interval of that distance excludes 0."""


@dataclass
class CellOutcome:
    """A graph under one protocol."""

    graph: StudyGraph
    protocol: str
    networks: dict[str, NetworkOutcome]
    comparisons: list[GateComparison]

    @property
    def is_shift(self) -> bool:
        return self.protocol != self.graph.protocol

    @property
    def oracle_gap(self) -> dict[str, Any] | None:
        """Summary of the differences of the oracle to no gate; ``None`` without an oracle."""
        if ORACLE not in self.networks:
            return None
        pairs = zip(self.networks[ORACLE].scores, self.networks[plan.NONE].scores)
        return summarise([oracle - none for oracle, none in pairs])

    @property
    def is_primary(self) -> bool:
        """Whether the cell belongs to the family of the primary tests."""
        return not self.graph.is_generated and not self.is_shift


@dataclass(frozen=True)
class Verdict:
    """The result of the decision rule."""

    pays: bool
    gains: dict[str, list[str]]
    """Graphs with a significant gain, by confirmatory gate."""
    losses: dict[str, list[str]]


@dataclass
class Outcomes:
    """Everything that the study reports."""

    cells: list[CellOutcome]
    missing: list[str]
    """One line for every graph or protocol without all report runs."""
    machines: list[str]
    verdict: Verdict = field(default_factory=lambda: Verdict(False, {}, {}))


def find_outcomes(
    graphs: Sequence[StudyGraph], records: Records, root: Path | None = None
) -> Outcomes:
    """Compute the outcomes of graphs from the recorded runs.

    A gate is shown if it has the seeds of the network without a gate, and tested if these are all
    ten report seeds.
    """
    cells = []
    missing = []
    machines: set[str] = set()
    for graph in graphs:
        winners = select_winners(graph, records, root)
        unsearched = [network for network in plan.networks() if network not in winners]
        if unsearched:
            missing.append(f"{graph.title}: no complete search of {', '.join(unsearched)}")
        if plan.NONE not in winners:
            continue
        gains = _same_settings(graph, winners, records, root)
        for protocol in (graph.protocol, *graph.shifts):
            runs = {
                network: report_runs(graph, protocol, network, winners, records, root)
                for network in networks_of(graph, protocol, winners)
            }
            seeds = _shown_seeds(graph, runs)
            complete = {n: found for n, found in runs.items() if found.keys() >= set(seeds)}
            incomplete = [network for network in runs if network not in complete]
            if len(seeds) < len(graph.report_seeds):
                missing.append(f"{graph.title}, {protocol}: {len(seeds)} report seeds")
            elif incomplete:
                missing.append(f"{graph.title}, {protocol}: report runs of {', '.join(incomplete)}")
            if seeds:
                cells.append(_cell(graph, protocol, complete, seeds, winners, gains))
                machines |= _machines(complete)
    correct_primary_tests(cells)
    return Outcomes(cells, missing, sorted(machines), judge(cells))


def correct_primary_tests(cells: Sequence[CellOutcome]) -> None:
    """Set ``p_holm`` of all confirmatory tests on real graphs with all report seeds."""
    family = []
    values = []
    for cell in cells:
        for comparison in cell.comparisons:
            complete = comparison.runs == len(plan.REPORT_SEEDS)
            tested = cell.is_primary and comparison.confirmatory and complete
            if tested and comparison.p is not None:
                family.append(comparison)
                values.append(comparison.p)
    for comparison, p in zip(family, holm(values)):
        comparison.p_holm = p


def judge(cells: Sequence[CellOutcome]) -> Verdict:
    """Apply the decision rule: a gain on three graphs, and fewer losses than gains."""
    compared = {comparison.gate for cell in cells for comparison in cell.comparisons}
    gates = [gate for gate in plan.CONFIRMATORY if gate in compared]
    gains: dict[str, set[str]] = {gate: set() for gate in gates}
    losses: dict[str, set[str]] = {gate: set() for gate in gates}
    for cell in cells:
        for comparison in cell.comparisons:
            if comparison.p_holm is None or comparison.p_holm >= SIGNIFICANT:
                continue
            side = gains if comparison.difference > 0 else losses
            side[comparison.gate].add(cell.graph.family)
    pays = any(
        len(gains[gate]) >= LEAST_GRAPHS and len(losses[gate]) < len(gains[gate]) for gate in gains
    )
    return Verdict(pays, _sorted(gains), _sorted(losses))


def _sorted(graphs: Mapping[str, set[str]]) -> dict[str, list[str]]:
    return {gate: sorted(names) for gate, names in graphs.items()}


def _shown_seeds(graph: StudyGraph, runs: Mapping[str, Runs]) -> list[int]:
    """Return the seeds that are shown: those of the network without a gate.

    The networks of generated graphs are trained seed by seed, so the last seed of an interrupted
    report is left out.
    """
    seeds = sorted(runs[plan.NONE])
    if not graph.is_generated:
        return seeds
    begun = [found for found in runs.values() if found]
    return [seed for seed in seeds if all(seed in found for found in begun)]


def _machines(runs: Mapping[str, Runs]) -> set[str]:
    records = [record for found in runs.values() for record in found.values()]
    return {f"{record.device}; {record.machine}" for record in records}


def _cell(
    graph: StudyGraph,
    protocol: str,
    runs: Mapping[str, Runs],
    seeds: Sequence[int],
    winners: dict[str, Winner],
    same_settings: Mapping[str, list[float]],
) -> CellOutcome:
    networks = {}
    for network, found in runs.items():
        used = [found[seed] for seed in seeds]
        networks[network] = _network(used, winner_of(network, winners), graph.metric)
    # Generated graphs of different seeds have no nodes in common.
    ratio = None if graph.is_generated else _test_to_train(runs[plan.NONE])
    comparisons = []
    for gate, differences in same_settings.items():
        if gate in networks:
            comparisons.append(_compare(gate, networks, ratio, differences))
    return CellOutcome(graph, protocol, networks, comparisons)


def _network(runs: Sequence[Record], winner: Winner, metric: str) -> NetworkOutcome:
    intervals = []
    nodes = []
    for interval in range(INTERVALS):
        counted, correct = interval_names(interval)
        numbers = [int(run.metrics.get(counted, 0)) for run in runs]
        hits = [int(run.metrics.get(correct, 0)) for run in runs]
        accuracies = [right / count if count else None for count, right in zip(numbers, hits)]
        intervals.append(tuple(accuracies))
        nodes.append(sum(numbers))
    return NetworkOutcome(
        draw=winner.draw,
        settings=winner.settings,
        validation=winner.validation,
        seeds=tuple(run.seed for run in runs),
        scores=tuple(run.metrics[f"test_{metric}"] for run in runs),
        # A run that diverged has no epochs.
        dead=sum(run.dead or not run.metrics["epochs"] for run in runs),
        intervals=tuple(intervals),
        interval_nodes=tuple(nodes),
    )


def _test_to_train(runs: Runs) -> float | None:
    """Return the number of test nodes per training node, the mean over the splits."""
    ratios = [
        run.metrics["test_nodes"] / run.metrics["train_nodes"]
        for run in runs.values()
        if "train_nodes" in run.metrics
    ]
    return sum(ratios) / len(ratios) if ratios else None


def _compare(
    gate: str,
    networks: Mapping[str, NetworkOutcome],
    test_to_train: float | None,
    same_settings: list[float],
) -> GateComparison:
    a = networks[gate].scores
    b = networks[plan.NONE].scores
    test = paired(a, b)
    overlapping = None
    if test_to_train is not None and test.runs > 1:
        overlapping = paired_overlapping(a, b, test_to_train)
    share = None
    if ORACLE in networks:
        gap = paired(networks[ORACLE].scores, b)
        # The share has no meaning where the oracle is not better beyond chance.
        if gap.ci95 is not None and gap.difference > gap.ci95:
            share = test.difference / gap.difference
    return GateComparison(
        gate=gate,
        confirmatory=gate in plan.CONFIRMATORY,
        difference=test.difference,
        ci95=test.ci95,
        p=test.p,
        runs=test.runs,
        p_signed_rank=signed_rank(a, b) if test.runs > 1 else None,
        p_overlapping=overlapping,
        same_settings=summarise(same_settings),
        oracle_share=share,
    )


def _same_settings(
    graph: StudyGraph, winners: Mapping[str, Winner], records: Records, root: Path | None
) -> dict[str, list[float]]:
    """Return the gains in validation score at equal settings, one per draw, for every gate."""
    searched = [gate for gate in plan.gates() if gate in winners]
    scores: dict[str, list[float]] = {}
    for network in (plan.NONE, *searched):
        scores[network] = []
        for settings in all_draws(graph):
            config = plan.config(network, settings)
            score = validation_score(graph, config, plan.FEW_SEEDS, records, root)
            assert score is not None, "the search is complete"
            scores[network].append(score)
    gains = {}
    for gate in searched:
        gains[gate] = [a - b for a, b in zip(scores[gate], scores[plan.NONE])]
    return gains
