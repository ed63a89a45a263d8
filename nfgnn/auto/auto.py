"""From a graph to the best model for it: :func:`run_auto`."""

import hashlib
import json
import shlex
import tempfile
import time as clock
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nfgnn.auto.ablation import has_computed_features
from nfgnn.auto.budget import Budget
from nfgnn.auto.final_models import FinalModels, final_models
from nfgnn.auto.graph_value import ValidationPredictions, graph_value
from nfgnn.auto.leaderboard import build_leaderboard
from nfgnn.auto.portfolio import PortfolioEntry, load_portfolio
from nfgnn.auto.result import BOTH, FEATURES, LINKS, AutoResult
from nfgnn.auto.run_files import PRESET, AutoFolder, finished_result
from nfgnn.auto.search import Search, SearchOutcome
from nfgnn.auto.trained_entries import Executors
from nfgnn.auto.validation import ValidationSplits, validation_splits
from nfgnn.errors import UserError
from nfgnn.progress import Progress
from nfgnn.training import (
    Experiment,
    Graph,
    InProcess,
    Metric,
    RayTasks,
    TimeLimit,
    WorkerPool,
    class_counts,
    class_names,
    device_name,
    majority_scores,
    resolve_device,
    resolve_metric,
    store_of,
    usable_cores,
)
from nfgnn.training.metrics import AUTO
from nfgnn.training.trainer import one_thread, stored_values

_LARGE = 3_000_000
"""Edges and features of a graph that is trained by all threads of one process."""
_WORKERS_PAY = 3.0
"""Workers take about as long to start as this process took to start and to load the graph."""
_LEAST_RUNS = 8
LOCAL = "local"
RAY = "ray"


@dataclass(frozen=True)
class AutoTask:
    """What is searched, and how long. It decides the result, where the budget is not time."""

    graph: Graph
    protocol: str
    """How the nodes are split."""
    seed: int = 0
    """Of the split, of the models and of the search."""
    time: float | None = None
    """Time limit in seconds of everything, from ``started`` on."""
    max_runs: int | None = None
    """Number of trainings, in place of a time limit."""
    metric: str | None = None
    """What models are compared by; by default the metric of the graph."""
    device: str = "auto"
    workers: int | None = None
    """Number of processes on a CPU; by default one per core. On Ray, most runs at a time."""
    source: Mapping[str, Any] | None = None
    """Where the graph came from, to load it again later."""
    portfolio: Path | None = None
    """File of configurations that are tried first; by default those that ship."""
    single: bool = False
    """Whether to leave out the ensemble."""
    engine: str = LOCAL
    """Where to train: ``"local"``, or ``"ray"`` for a Ray cluster."""
    ray_address: str | None = None
    """Address of the cluster; by default ``$RAY_ADDRESS``, otherwise a new local cluster."""

    def resolved_metric(self) -> Metric:
        """Return the metric that models are compared by."""
        return resolve_metric(self.metric or AUTO, self.graph.data)

    def entries(self) -> list[PortfolioEntry]:
        """Return the configurations that are tried first.

        On a large graph, those that ignore the edges or the features come first, because they are
        the cheapest: even a short search then has a model that was trained to the end.
        """
        entries = suitable_entries(
            load_portfolio(self.portfolio), self.graph, self.resolved_metric()
        )
        if self.is_large:
            entries.sort(key=lambda entry: entry.family == BOTH)
        return entries

    def description(self) -> dict[str, Any]:
        """Return everything that decides the result."""
        configs = json.dumps([entry.config.to_dict() for entry in self.entries()])
        return {
            "dataset": self.graph.name,
            "fingerprint": self.graph.fingerprint,
            "protocol": self.protocol,
            "seed": self.seed,
            "time": self.time,
            "max_runs": self.max_runs,
            "metric": self.resolved_metric().name,
            "device": device_name(self.device),
            "portfolio": hashlib.sha256(configs.encode()).hexdigest()[:16],
            "single": self.single,
        }

    @property
    def is_large(self) -> bool:
        """Whether all threads of this process train a model faster than one thread."""
        data = self.graph.data
        return bool(data.num_edges + stored_values(data.x) > _LARGE)

    def check(self) -> None:
        """Refuse a store, which holds no graph, and an engine that does not exist."""
        if self.engine not in (LOCAL, RAY):
            raise UserError(f"unknown engine '{self.engine}': choose {LOCAL} or {RAY}")
        if store_of(self.graph.data) is not None:
            raise UserError(
                f"{self.graph.source} is a store, which contains terms but no graph: auto needs "
                "the graph itself; train a Scalable… model on the store with `nfgnn train`"
            )


def run_auto(
    graph: Graph,
    protocol: str,
    seed: int,
    *,
    time: float | None,
    max_runs: int | None,
    metric: str | None,
    device: str,
    workers: int | None,
    folder: Path | None,
    source: Mapping[str, Any] | None,
    portfolio: Path | None,
    single: bool,
    resume: bool,
    overwrite: bool,
    progress: Progress,
    started: float | None = None,
    engine: str = LOCAL,
    ray_address: str | None = None,
) -> AutoResult:
    """Search the best model for a graph and write it to a run folder.

    Args:
        graph, protocol, seed, time, max_runs, metric, device, workers, source, portfolio, single:
            as for :class:`AutoTask`.
        folder: the run folder to write; ``None`` writes nothing.
        resume: continue an interrupted search.
        overwrite: replace the result of another search.
        progress: reports the best score so far.
        started: when the command started, by the clock of :func:`time.monotonic`; by default now.
        engine, ray_address: as for :class:`AutoTask`.
    """
    task = AutoTask(
        graph,
        protocol,
        seed,
        time,
        max_runs,
        metric,
        device,
        workers,
        source,
        portfolio,
        single,
        engine,
        ray_address,
    )
    if started is None:
        started = clock.monotonic()
    if folder is None:
        return search_models(task, progress, started)[1]
    task.check()
    description = task.description()
    if not overwrite:
        finished = finished_result(folder, description)
        if finished is not None:
            progress.say(f"{folder} already contains this result: use --overwrite to search again")
            return finished
    with (
        one_thread(not task.is_large),
        AutoFolder.open(folder, description, resume, overwrite) as files,
    ):
        final, result = search_in_folder(task, files.runs.parent, progress, started, folder)
        return files.publish(final, result)


def search_models(
    task: AutoTask, progress: Progress, started: float
) -> tuple[FinalModels, AutoResult]:
    """Search the best model for a graph and keep it in memory only.

    Args:
        task: what is searched.
        progress: reports the best score so far.
        started: when the command started, by the clock of :func:`time.monotonic`.
    """
    task.check()
    with (
        one_thread(not task.is_large),
        tempfile.TemporaryDirectory(prefix="nfgnn-auto-") as folder,
    ):
        return search_in_folder(task, Path(folder), progress, started, None)


def search_in_folder(
    task: AutoTask, work: Path, progress: Progress, started: float, folder: Path | None
) -> tuple[FinalModels, AutoResult]:
    """Search in a folder that keeps unfinished work.

    Args:
        task: what is searched.
        work: for finished runs and decisions.
        progress: reports the best score so far.
        started: when the command started.
        folder: where the result will be.
    """
    metric = task.resolved_metric()
    budget = Budget(task.time, task.max_runs, started, work / "clock.json")
    outcome = search_graph(task, budget, work, progress)
    leaderboard = build_leaderboard(outcome.candidates, outcome.scored, metric)
    best = leaderboard[0]
    experiment = Experiment(
        task.graph, task.protocol, [task.seed], best.config, task.device, task.source
    )
    final = final_models(
        outcome.candidates, leaderboard, outcome.scored, metric, experiment, task.single
    )
    data = final.run.data
    predictions = ValidationPredictions.of(
        outcome.candidates, leaderboard, outcome.scored, metric, outcome.ablations
    )
    result = AutoResult(
        dataset=task.graph.name,
        protocol=task.protocol,
        seed=task.seed,
        metric=metric.name,
        device=device_name(task.device),
        classes=class_names(data),
        class_counts=class_counts(data),
        majority=majority_scores(data, metric),
        leaderboard=leaderboard,
        ensemble=final.ensemble,
        test=final.test,
        ensemble_test=final.ensemble_test,
        value=graph_value(
            predictions,
            data.edge_index,
            data.y,
            class_names(data),
            has_features=not has_computed_features(data),
        ),
        validation_splits=len(outcome.scored.nodes),
        runs=outcome.runs,
        seconds=budget.elapsed(),
        seconds_to_first=outcome.seconds_to_first,
        time_limit=task.time,
        command=_command(task, folder),
        notes=outcome.notes,
        warnings=() if final.warning is None else (final.warning,),
    )
    return final, result


def _command(task: AutoTask, folder: Path | None) -> str:
    """Return the command that trains the best single model again."""
    source = task.source or {}
    words = ["nfgnn", "train", str(source.get("dataset") or task.graph.source)]
    for column in source.get("columns") or []:
        words += ["--column", str(column)]
    if source.get("root"):
        words += ["--root", str(source["root"])]
    words += ["--preset", str((folder or Path()) / PRESET), "--protocol", task.protocol]
    words += ["--seed", str(task.seed), "--runs", "1"]
    return shlex.join(words)


def search_graph(task: AutoTask, budget: Budget, folder: Path, progress: Progress) -> SearchOutcome:
    """Search the best configurations of a graph.

    Args:
        task: what is searched.
        budget: time or runs.
        folder: for finished runs and decisions.
        progress: reports the best score so far.
    """
    metric = task.resolved_metric()
    splits = validation_splits(task.graph, task.protocol, task.seed, metric)
    with _executors(splits, task, budget, progress) as executors:
        search = Search(
            splits,
            metric,
            task.entries(),
            budget,
            folder,
            executors,
            progress,
            task.seed,
            task.device,
        )
        return search.run()


def _is_short(budget: Budget) -> bool:
    """Whether a search ends before it would gain by worker processes, which import torch again."""
    if budget.is_timed:
        return budget.training_seconds < _WORKERS_PAY * budget.seconds_before
    return budget.runs_left < _LEAST_RUNS


def suitable_entries(
    portfolio: list[PortfolioEntry], graph: Graph, metric: Metric
) -> list[PortfolioEntry]:
    """Return the configurations that make sense on a graph, with its metric.

    A graph without features has no model that ignores the edges, because its features were
    computed from them. A graph without edges has no model that ignores the features.
    """
    data = graph.data
    left_out = set()
    if has_computed_features(data):
        left_out.add(FEATURES)
    if data.num_edges == 0:
        left_out.add(LINKS)
    entries = []
    for entry in portfolio:
        training = replace(entry.config.training, metric=metric.name, select=AUTO)
        config = replace(entry.config, training=training).for_graph(data)
        if entry.family not in left_out:
            entries.append(PortfolioEntry(config, entry.family))
    if not entries:
        raise UserError("the portfolio has no configuration that suits this graph: add a GCN")
    return entries


@contextmanager
def _executors(
    splits: ValidationSplits, task: AutoTask, budget: Budget, progress: Progress
) -> Iterator[Executors]:
    """Choose where runs execute.

    A run gives the same numbers in this process and in a worker, so the number of workers does not
    change results.
    """
    limit = TimeLimit()
    device = resolve_device(task.device).type
    if task.engine == RAY:
        cluster = RayTasks(
            task.ray_address, progress.say, task.workers, limit, whole_nodes=task.is_large
        )
        with cluster:
            capacity = cluster.capacity(task.device)
            yield Executors(cluster, cluster, limit, capacity, is_batched=device == "cuda")
        return
    if device != "cpu" or task.is_large:
        in_process = InProcess(limit=limit)
        yield Executors(in_process, in_process, limit, is_batched=device == "cuda")
        return
    single = InProcess(single_thread=True, limit=limit)
    count = 1 if _is_short(budget) else task.workers or usable_cores()
    if count == 1:
        yield Executors(single, single, limit)
        return
    with WorkerPool(splits.graph, count, limit) as pool:
        yield Executors(single, pool, limit, count)
