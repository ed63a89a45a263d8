"""The scores of the portfolio's candidates on all graphs, from recorded runs."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nfgnn.auto import model_family
from nfgnn.nn import has_weights_per_node
from nfgnn.paper.search.portfolio_candidates import (
    Candidate,
    Column,
    config_key,
    portfolio_candidates,
    portfolio_columns,
    relatives,
)
from nfgnn.paper.search.portfolio_runs import SEEDS
from nfgnn.training import METRICS, Record, RunConfig

ACCURACY = "accuracy"
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Matrix:
    """Mean scores over the seeds; a row per candidate and a column per graph.

    A cell is NaN if a run is missing.
    """

    candidates: tuple[Candidate, ...]
    columns: tuple[Column, ...]
    validation: Values
    """The metric of the graph on validation nodes, in percent."""
    test: Values
    """The same on test nodes. It is reported and selects nothing."""
    cost: Values
    """Seconds of a candidate, relative to the median candidate on the same graph and machine; one
    value per candidate."""
    noise: Values
    """Standard error of a validation score, in points; one value per graph."""

    families: tuple[str, ...]
    """What the candidates read: see :func:`nfgnn.auto.model_family`."""
    tied: NDArray[np.bool_]
    """Whether a candidate has weights per node, which tie it to one graph."""

    def regret(self) -> Values:
        """Return by how many points each candidate is worse than the best one on a graph."""
        best = np.nanmax(self.validation, axis=0, keepdims=True)
        regret: Values = best - self.validation
        return regret

    def without(self, graph: str) -> "Matrix":
        """Return what is known without a graph and its relatives.

        Candidates that one of them has suggested are left out, too.
        """
        unknown = relatives(graph)
        rows = [i for i, c in enumerate(self.candidates) if not c.origins & unknown]
        columns = [j for j, c in enumerate(self.columns) if c.name not in unknown]
        return self.part(rows, columns)

    def part(self, rows: Sequence[int], columns: Sequence[int]) -> "Matrix":
        return replace(
            self,
            candidates=tuple(self.candidates[i] for i in rows),
            columns=tuple(self.columns[j] for j in columns),
            validation=self.validation[np.ix_(rows, columns)],
            test=self.test[np.ix_(rows, columns)],
            cost=self.cost[rows],
            noise=self.noise[columns],
            families=tuple(self.families[i] for i in rows),
            tied=self.tied[rows],
        )


def make_matrix(records: Sequence[Record]) -> Matrix:
    """Return the matrix of recorded runs.

    Graphs without a run and candidates without a complete cell are left out. Costs are from runs on
    a CPU, where there are any: on a GPU, runs share the time of a batch.
    """
    candidates = portfolio_candidates()
    row_of = {config_key(candidate.config): i for i, candidate in enumerate(candidates)}
    columns = portfolio_columns()
    column_of = {(column.name, column.protocol): j for j, column in enumerate(columns)}
    runs: dict[tuple[int, int], list[Record]] = {}
    for record in records:
        row = row_of.get(config_key(RunConfig.from_dict(record.config)))
        column = column_of.get((record.dataset, record.protocol))
        if row is not None and column is not None and record.seed in SEEDS:
            runs.setdefault((row, column), []).append(record)
    shape = (len(candidates), len(columns))
    validation = np.full(shape, np.nan)
    test = np.full(shape, np.nan)
    difference = np.full(shape, np.nan)
    seconds: dict[tuple[str, str], Values] = {}
    for cell, found in runs.items():
        if len(found) < len(SEEDS):
            continue
        scores = [100 * _score(run, "val") for run in found]
        validation[cell] = np.mean(scores)
        difference[cell] = scores[0] - scores[1]
        test[cell] = 100 * np.mean([_score(run, "test") for run in found])
        machine = (found[0].device, found[0].machine)
        times = seconds.setdefault(machine, np.full(shape, np.nan))
        times[cell] = np.mean([run.metrics["seconds"] for run in found])
    cost = _relative_cost([times for (device, _), times in seconds.items() if device == "cpu"])
    on_gpu = _relative_cost([times for (device, _), times in seconds.items() if device != "cpu"])
    cost = np.where(np.isnan(cost), on_gpu, cost)
    cost[np.isnan(cost)] = np.inf
    noise = _standard_error(difference)
    families = tuple(model_family(candidate.config.model) for candidate in candidates)
    tied = np.array(_tied_candidates())
    matrix = Matrix(candidates, tuple(columns), validation, test, cost, noise, families, tied)
    known = ~np.isnan(validation)
    rows = np.flatnonzero(known.any(axis=1)).tolist()
    return matrix.part(rows, np.flatnonzero(known.any(axis=0)).tolist())


@lru_cache
def _tied_candidates() -> list[bool]:
    """Return which candidates have weights per node; building the models takes a second."""
    return [has_weights_per_node(c.config.build(2, 2, 2)) for c in portfolio_candidates()]


def _score(record: Record, part: str) -> float:
    """Return the official metric of a graph, which is accuracy where no other is recorded."""
    for name in METRICS:
        if name not in (ACCURACY, "log_loss") and f"{part}_{name}" in record.metrics:
            return record.metrics[f"{part}_{name}"]
    return record.metrics[f"{part}_{ACCURACY}"]


def _relative_cost(seconds: Sequence[Values]) -> Values:
    """Return the geometric mean of the time relative to the median candidate.

    Args:
        seconds: times per candidate and graph, one array per machine.
    """
    if not seconds:
        return np.full(len(portfolio_candidates()), np.nan)
    times = np.log(np.concatenate(seconds, axis=1))
    with warnings.catch_warnings():
        # A graph without runs on a machine, and a candidate without any.
        warnings.simplefilter("ignore", RuntimeWarning)
        relative = times - np.nanmedian(times, axis=0, keepdims=True)
        cost: Values = np.exp(np.nanmean(relative, axis=1))
    return cost


def _standard_error(difference: Values) -> Values:
    """Return the standard error of the mean of two seeds, per graph.

    What all candidates have in common, one split being easier than the other, is no error. The
    median ignores the few candidates that fail on one seed.
    """
    errors = np.full(difference.shape[1], np.nan)
    for column, values in enumerate(difference.T):
        known = values[~np.isnan(values)]
        if known.size:
            # The median absolute deviation of normal values is 0.6745 standard deviations.
            errors[column] = np.median(np.abs(known - np.median(known))) / 0.6745 / 2
    return errors
