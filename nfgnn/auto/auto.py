"""From a graph to the best model for it: :func:`run_auto`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from torch_geometric.data import Data

from nfgnn.auto.budget import Budget
from nfgnn.auto.portfolio import PortfolioEntry, load_portfolio
from nfgnn.auto.result import FEATURES, LINKS
from nfgnn.auto.search import Executors, Search, SearchOutcome
from nfgnn.auto.validation import ValidationSplits, validation_splits
from nfgnn.data import degree_features
from nfgnn.errors import UserError
from nfgnn.progress import Progress
from nfgnn.training import (
    Graph,
    InProcess,
    Metric,
    TimeLimit,
    WorkerPool,
    resolve_device,
    store_of,
    usable_cores,
)
from nfgnn.training.metrics import AUTO
from nfgnn.training.trainer import stored_values

_LARGE = 3_000_000
"""Edges and features of a graph that is trained by all threads of one process."""


def search_graph(
    graph: Graph,
    protocol: str,
    seed: int,
    metric: Metric,
    budget: Budget,
    folder: Path,
    progress: Progress,
    portfolio: Path | None = None,
    device: str = "auto",
    workers: int | None = None,
) -> SearchOutcome:
    """Search the best configurations of a graph.

    Args:
        graph: the graph.
        protocol: how its nodes are split.
        seed: of the split, of the models and of the search.
        metric: what configurations are compared by.
        budget: time or runs.
        folder: for finished runs.
        progress: reports the best score so far.
        portfolio: file of configurations that are tried first; by default those that ship.
        device: where to train.
        workers: number of processes on a CPU; by default one per core.
    """
    if store_of(graph.data) is not None:
        raise UserError(
            f"{graph.source} is a store, which holds terms and no graph: auto needs the graph "
            "itself; train a Scalable… model on the store with `nfgnn train`"
        )
    splits = validation_splits(graph, protocol, seed, metric)
    entries = suitable_entries(load_portfolio(portfolio), graph, metric)
    with _executors(splits, device, workers) as executors:
        search = Search(splits, metric, entries, budget, folder, executors, progress, seed, device)
        return search.run()


def suitable_entries(
    portfolio: list[PortfolioEntry], graph: Graph, metric: Metric
) -> list[PortfolioEntry]:
    """Return the configurations that make sense on a graph, with its metric.

    A graph without features has no model that ignores the edges, because its features were
    computed from them. A graph without edges has no model that ignores the features.
    """
    data = graph.data
    left_out = set()
    if _has_computed_features(data):
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


def _has_computed_features(data: Data) -> bool:
    """Whether the features are those that a graph without features gets."""
    if data.x.layout != torch.strided:
        return False
    return torch.equal(data.x, degree_features(data.edge_index, data.num_nodes))


@contextmanager
def _executors(splits: ValidationSplits, device: str, workers: int | None) -> Iterator[Executors]:
    """Choose where runs execute.

    A run gives the same numbers in this process and in a worker, so the number of workers does not
    change results.
    """
    limit = TimeLimit()
    data = splits.graph.data
    is_large = data.num_edges + stored_values(data.x) > _LARGE
    if resolve_device(device).type != "cpu" or is_large:
        in_process = InProcess(limit=limit)
        yield Executors(in_process, in_process, limit)
        return
    single = InProcess(single_thread=True, limit=limit)
    count = workers or usable_cores()
    if count == 1:
        yield Executors(single, single, limit)
        return
    with WorkerPool(splits.graph, count, limit) as pool:
        yield Executors(single, pool, limit, count)
