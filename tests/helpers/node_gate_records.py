"""Hand-made records of the study of node gates."""

from collections.abc import Callable

from nfgnn.paper.studies import node_gate_plan as plan
from nfgnn.paper.studies.node_gate_oracle import ORACLE, OracleConfig
from nfgnn.paper.studies.node_gate_plan import StudyGraph
from nfgnn.paper.studies.node_gate_runs import (
    INTERVALS,
    all_draws,
    interval_names,
    networks_of,
    select_winners,
    winner_of,
)
from nfgnn.training import Record, Records, RunConfig

Validation = Callable[[str, int, int], float]
"""Validation score by network, number of the draw and seed."""
Test = Callable[[str, int], float]
"""Test score by network and seed."""


def fingerprint(graph: StudyGraph, seed: int, *_: object) -> str:
    """Return a made-up fingerprint, in place of :meth:`StudyGraph.fingerprint`."""
    return f"{graph.name} {seed}" if graph.is_generated else graph.name


def add_search(records: Records, graph: StudyGraph, validation: Validation) -> None:
    """Add the search runs of all draws. Their test scores would choose the worst draw."""
    made = []
    for network in plan.networks():
        for number, settings in enumerate(all_draws(graph)):
            config = plan.config(network, settings)
            for seed in plan.SEARCH_SEEDS:
                value = validation(network, number, seed)
                metrics = {
                    f"val_{graph.metric}": value,
                    f"test_{graph.metric}": 1 - value,
                    "epochs": 5,
                }
                made.append(_record(graph, graph.protocol, seed, config, metrics))
    records.add(made)


def test_nodes(seed: int) -> int:
    """Return the number of test nodes of a split, 100 on average over the report seeds."""
    return 91 + 2 * (seed - plan.REPORT_SEEDS[0])


def add_report(records: Records, graph: StudyGraph, protocol: str, test: Test) -> None:
    """Add the report runs: 20 test nodes in every interval, half of which are correct."""
    winners = select_winners(graph, records)
    made = []
    for network in networks_of(graph, protocol, winners):
        config = winner_of(network, winners).config
        if network == ORACLE:
            config = OracleConfig.of(config)
        for seed in plan.REPORT_SEEDS:
            metrics = {f"test_{graph.metric}": test(network, seed), "epochs": 5}
            metrics |= {"train_nodes": 200, "test_nodes": test_nodes(seed)}
            for interval in range(INTERVALS):
                nodes, correct = interval_names(interval)
                metrics |= {nodes: 20, correct: 10}
            made.append(_record(graph, protocol, seed, config, metrics))
    records.add(made)


def _record(
    graph: StudyGraph, protocol: str, seed: int, config: RunConfig, metrics: dict[str, float]
) -> Record:
    return Record(
        dataset=graph.name,
        fingerprint=fingerprint(graph, seed),
        protocol=protocol,
        seed=seed,
        config=config.to_dict(),
        metrics=metrics,
        device="cpu",
        machine="2 cores",
    )
