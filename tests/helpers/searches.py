"""A finished search that takes a second: three small models on a graph of a few dozen nodes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from helpers.auto_results import auto_result

from nfgnn.auto.candidate import PORTFOLIO, Candidate
from nfgnn.auto.candidate_runs import CandidateRuns
from nfgnn.auto.final_models import FinalModels, final_models
from nfgnn.auto.leaderboard import build_leaderboard, rank_candidates
from nfgnn.auto.result import AutoResult
from nfgnn.auto.run_files import AutoFolder
from nfgnn.auto.validation import validation_splits
from nfgnn.progress import Progress
from nfgnn.training import (
    Experiment,
    Graph,
    InProcess,
    RunConfig,
    execute,
    resolve_metric,
)

MODELS = (("GCN", {"lr": 0.05}), ("MLP", {}), ("LINK", {}))
DESCRIPTION = {"fingerprint": "of the graph", "seed": 0, "max_runs": 3}


def train_candidates(runs: Path, graph: Graph, epochs: int = 30) -> list[Candidate]:
    """Train the models on all validation splits of the graph."""
    metric = resolve_metric("auto", graph.data)
    splits = validation_splits(graph, "stratified", 0, metric)
    results = CandidateRuns(runs)
    candidates = []
    for model, settings in MODELS:
        config = RunConfig.resolve(model, {"epochs": epochs, **settings}, None, None, "none")
        config = config.for_graph(graph.data)
        specs = [splits.spec(config, split) for split in range(splits.count)]
        assert not execute(specs, results, InProcess(), Progress(quiet=True), "cpu")
        shares = [results.probabilities(spec) for spec in specs]
        own = tuple(all_nodes[nodes] for all_nodes, nodes in zip(shares, splits.scored.nodes))
        folders = tuple(results.path(spec) for spec in specs)
        candidates.append(Candidate(config, "features", PORTFOLIO, folders, own, 1.0))
    return rank_candidates(candidates, splits.scored, metric)


def finish_search(
    files: AutoFolder, graph: Graph, source: Mapping[str, Any] | None = None, single: bool = False
) -> tuple[AutoResult, FinalModels]:
    """Train the models, select the ensemble and publish the folder."""
    metric = resolve_metric("auto", graph.data)
    ranked = train_candidates(files.runs, graph)
    scored = validation_splits(graph, "stratified", 0, metric).scored
    entries = build_leaderboard(ranked, scored, metric)
    experiment = Experiment(graph, "stratified", [0], ranked[0].config, "cpu", source)
    final = final_models(ranked, entries, scored, metric, experiment, single)
    result = auto_result(
        dataset=graph.name,
        leaderboard=entries,
        ensemble=final.ensemble,
        test=final.test,
        ensemble_test=final.ensemble_test,
    )
    return files.publish(final, result), final


def write_search(
    folder: Path, graph: Graph, source: Mapping[str, Any] | None = None, single: bool = False
) -> tuple[AutoResult, FinalModels]:
    """Write the folder of a search."""
    with AutoFolder.open(folder, DESCRIPTION, resume=False) as files:
        return finish_search(files, graph, source, single)
