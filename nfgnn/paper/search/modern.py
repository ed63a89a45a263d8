"""The search on the newer benchmarks, and the runs of the table ``modern``.

A search requests the same number of draws (:mod:`~nfgnn.paper.search.modern_draws`) of every model
on every graph. A time limit may leave some of them untrained: the committed search has fewer draws
and finalists of some models, which ``results/modern-search.md`` and ``docs/deep-networks.md``
state. The search proceeds in rounds, and each round keeps the draws of best mean of the official
metric on validation nodes:

1. All draws are trained with little patience: on the official splits 0 and 1 of a small graph, and
   on split 0 of a large one.
2. On a large graph, the better half is trained on split 1 as well.
3. The best draws, the finalists, are trained with more patience on the splits 0 to 2.
4. On a small graph, whose validation scores are noisy, the best two of them are trained on all ten
   splits.

The winner is the best of the last round. Scores of test nodes are recorded and select nothing. The
table trains the winners with seeds from 1000 on: the same splits, other weights.
:mod:`~nfgnn.paper.search.modern_files` writes the presets.

Every run is a record, and a recorded run is not repeated. Both functions stop at a time limit, and
the next call resumes. More draws may be asked for later.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from nfgnn.data import REGISTRY
from nfgnn.paper.find_graph import find_fingerprint, find_graph
from nfgnn.paper.search.engine import train_until
from nfgnn.paper.search.modern_draws import (
    NUMBERS,
    SMALL_GRAPH,
    Settings,
    final_settings,
    modern_draws,
)
from nfgnn.paper.table_plan import FIRST_REPORT_SEED, graph_name, make_plan
from nfgnn.paper.table_registry import TABLES, Column
from nfgnn.progress import Progress
from nfgnn.training import Record, Records, RunConfig, RunSpec, UntilDeadline

DRAW_SEEDS = range(2)
"""Seeds of the draws; under ``public`` they are numbers of official splits."""
FINALIST_SEEDS = range(3)
LAST_SEEDS = range(10)
"""Seeds of the last round on a small graph."""
PRECISION = "auto"
"""A GPU computes the networks that support it in bfloat16. Everything else is float32."""
REPORT_SEEDS = range(FIRST_REPORT_SEED, FIRST_REPORT_SEED + TABLES["modern"].runs)
"""Seeds of the table."""
FINALISTS = {"small": 4, "large": 2}
_LAST_FINALISTS = 2
_DRAW_SHARE = 0.6  # of the time of a search; the finalists take the rest
_NO_LIMIT = 1e9  # seconds


@dataclass(frozen=True)
class Cell:
    """A model on a graph."""

    column: Column
    model: str
    metric: str
    """The official metric on validation nodes, such as ``"val_roc_auc"``."""

    def __str__(self) -> str:
        return f"{self.model} on {graph_name(self.column.dataset)} ({self.column.protocol})"


@dataclass(frozen=True)
class Candidate:
    """A configuration that the search tries."""

    short_config: RunConfig
    """With little patience, as all draws are trained."""
    final_config: RunConfig
    """With the patience of finalists."""
    final_settings: Settings
    """The settings behind :attr:`final_config`, for presets and reports."""


@dataclass(frozen=True)
class Winner:
    """The configuration of best mean validation metric in a cell."""

    cell: Cell
    candidate: Candidate
    tried: int
    """Number of draws with results."""
    compared: int
    """Number of these with results on both splits of the first rounds, from which finalists are
    chosen. On a large graph, only the better half is trained on the second split."""
    runs: tuple[Record, ...]
    """On the seeds of finalists, or on those of the last round."""

    @property
    def val_mean(self) -> float:
        """Mean of the official metric on validation nodes, in percent."""
        return 100 * _mean(self.runs, self.cell.metric)

    @property
    def test_mean(self) -> float:
        """The same on test nodes. It is reported and selects nothing."""
        return 100 * _mean(self.runs, self.cell.metric.replace("val_", "test_", 1))


@dataclass(frozen=True)
class ModernSearch:
    """The cells of a search and where its runs are kept.

    Args:
        graphs: registered names, or paths of graphs with ten splits.
        models: names of models.
        draws: number of draws per cell.
        records: where every run is kept.
        settings: settings of all draws, such as ``{"precision": "float32"}``. By default, the
            precision is :data:`PRECISION`.
        root: folder with raw datasets.
    """

    graphs: Sequence[str]
    models: Sequence[str]
    draws: int
    records: Records
    settings: Mapping[str, Any] = field(default_factory=dict)
    root: Path | None = None

    def cells(self) -> list[Cell]:
        """Return the cells, graph by graph."""
        plan = make_plan("modern", self.graphs, self.models, root=self.root)
        cells = []
        for column in plan.columns:
            (shown,) = plan.metrics[column]
            metric = shown.replace("test_", "val_", 1)
            cells += [Cell(column, row.model, metric) for row in plan.rows]
        return cells

    def is_small(self, cell: Cell) -> bool:
        """Whether the graph of a cell has fewer nodes than :data:`SMALL_GRAPH`."""
        entry = REGISTRY.get(cell.column.dataset)
        if entry is not None:
            return entry.nodes < SMALL_GRAPH
        return int(find_graph(cell.column.dataset, self.root).data.num_nodes) < SMALL_GRAPH

    def candidates(self, cell: Cell) -> list[Candidate]:
        """Return the draws of a cell."""
        graph = f"{graph_name(cell.column.dataset)} {cell.column.protocol}"
        candidates = []
        for drawn in modern_draws(graph, cell.model, self.draws, self.is_small(cell)):
            common = {"precision": PRECISION, **self.settings}
            short = {**drawn, **common}
            final = {**drawn, **final_settings(), **common}
            candidates.append(
                Candidate(
                    RunConfig.resolve(cell.model, short, None, None, "none"),
                    RunConfig.resolve(cell.model, final, None, None, "none"),
                    final,
                )
            )
        return candidates

    def runs(self, cell: Cell, config: RunConfig, seeds: Sequence[int]) -> tuple[Record, ...]:
        """Return the recorded runs of a configuration; none if one of the seeds is missing."""
        fingerprint = find_fingerprint(cell.column.dataset, self.root, self.records)
        if fingerprint is None:
            return ()
        found = self.records.find(fingerprint, cell.column.protocol, config.to_dict(), seeds)
        if len(found) < len(seeds):
            return ()
        return tuple(found[seed] for seed in seeds)

    def best_draws(self, cell: Cell, seeds: Sequence[int], count: int) -> list[Candidate]:
        """Return the draws of best mean validation metric on these seeds."""
        runs_of = [
            (candidate, self.runs(cell, candidate.short_config, seeds))
            for candidate in self.candidates(cell)
        ]
        return _best(runs_of, cell.metric, count)

    def finalists(self, cell: Cell, count: int) -> list[Candidate]:
        """Return the draws that are trained with more patience."""
        return self.best_draws(cell, DRAW_SEEDS, count)

    def ranking(self, cell: Cell) -> list[Winner]:
        """Return the finalists, the best first.

        Those of the last round precede the others.
        """
        candidates = self.candidates(cell)
        tried = self._count(cell, DRAW_SEEDS[:1])
        compared = self._count(cell, DRAW_SEEDS)
        found = []
        for candidate in candidates:
            runs = self.runs(cell, candidate.final_config, FINALIST_SEEDS)
            if self.is_small(cell):
                runs = self.runs(cell, candidate.final_config, LAST_SEEDS) or runs
            if runs:
                found.append(Winner(cell, candidate, tried, compared, runs))
        # The sort is stable, so the first draw wins among equal ones.
        found.sort(key=lambda winner: (-len(winner.runs), -round(winner.val_mean, 4)))
        return found

    def _count(self, cell: Cell, seeds: Sequence[int]) -> int:
        """Return the number of draws with runs on these seeds."""
        configs = [candidate.short_config for candidate in self.candidates(cell)]
        return sum(1 for config in configs if self.runs(cell, config, seeds))

    def last_finalists(self, cell: Cell) -> list[Candidate]:
        """Return the finalists that are trained on all splits of a small graph.

        The finalists of all calls compete on the same seeds, so those of a later call with more
        draws can replace earlier ones.
        """
        runs_of = [
            (candidate, self.runs(cell, candidate.final_config, FINALIST_SEEDS))
            for candidate in self.candidates(cell)
        ]
        return _best(runs_of, cell.metric, _LAST_FINALISTS)

    def winner(self, cell: Cell) -> Winner | None:
        """Return the best of the finalists."""
        return next(iter(self.ranking(cell)), None)


def run_modern_search(
    graphs: Sequence[str],
    models: Sequence[str],
    draws: int,
    device: str,
    records: Records,
    time_limit: float | None = None,
    *,
    finalists: int | None = None,
    cut_short: bool = True,
    settings: Mapping[str, Any] | None = None,
    max_batch: int = 12,
    root: Path | None = None,
    progress: Progress | None = None,
) -> list[str]:
    """Train the draws of every cell, then the finalists, as far as they are not recorded.

    Args:
        graphs, models, draws, records, settings, root: see :class:`ModernSearch`.
        device: where to train.
        time_limit: seconds. What has not finished by then is trained by the next call.
        cut_short: whether the draws of a cell take at most 60 % of the time that is left, so that
            the best of those that have finished can be trained as finalists.
        finalists: number of draws that are trained with more patience; by default four on a small
            graph and two on a large one.
        max_batch: largest number of runs that are trained as one computation.
        progress: the display.

    Returns:
        One line per cell: its winner, or what is missing. Runs that failed have a line each.
    """
    search = ModernSearch(graphs, models, draws, records, settings or {}, root)
    trainer = _Trainer(search, device, time_limit, max_batch, progress)
    lines: list[str] = []
    for cell in search.cells():
        size = "small" if search.is_small(cell) else "large"
        limited = trainer.limited_to(_DRAW_SHARE) if cut_short else trainer
        is_complete = _train_draws(limited, cell, size, lines)
        count = FINALISTS[size] if finalists is None else finalists
        best = [candidate.final_config for candidate in search.finalists(cell, count)]
        lines += trainer.train(cell, best, FINALIST_SEEDS)
        if size == "small":
            last = [candidate.final_config for candidate in search.last_finalists(cell)]
            lines += trainer.train(cell, last, LAST_SEEDS)
        winner = search.winner(cell)
        if trainer.is_over or not is_complete:
            lines.append(f"{cell}: not finished")
        elif winner is None:
            lines.append(f"{cell}: no draw could be trained")
        else:
            lines.append(f"{cell}: validation {winner.val_mean:.2f} %, {winner.tried} draws")
    return lines


def _train_draws(trainer: "_Trainer", cell: Cell, size: str, lines: list[str]) -> bool:
    """Train the draws of a cell with little patience; return whether all could be trained in time.

    Lines about failed runs are added to ``lines``.
    """
    search = trainer.search
    drawn = [candidate.short_config for candidate in search.candidates(cell)]
    if size == "small":
        lines += trainer.train(cell, drawn, DRAW_SEEDS)
        return not trainer.is_over
    first = DRAW_SEEDS[:1]
    lines += trainer.train(cell, drawn, first)
    better = search.best_draws(cell, first, (len(drawn) + 1) // 2)
    lines += trainer.train(cell, [candidate.short_config for candidate in better], DRAW_SEEDS)
    return not trainer.is_over


def run_modern_table(
    graphs: Sequence[str],
    models: Sequence[str],
    draws: int,
    device: str,
    records: Records,
    time_limit: float | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    max_batch: int = 12,
    root: Path | None = None,
    progress: Progress | None = None,
) -> list[str]:
    """Train the winners of the search with the seeds of the table, as far as not recorded.

    The arguments are those of :func:`run_modern_search`, whose records must be in ``records``.

    Returns:
        One line per cell, and one per run that failed.
    """
    search = ModernSearch(graphs, models, draws, records, settings or {}, root)
    trainer = _Trainer(search, device, time_limit, max_batch, progress)
    lines = []
    for cell in search.cells():
        winner = search.winner(cell)
        if winner is None:
            lines.append(f"{cell}: the search has not selected a configuration yet")
            continue
        lines += trainer.train(cell, [winner.candidate.final_config], REPORT_SEEDS)
        runs = search.runs(cell, winner.candidate.final_config, REPORT_SEEDS)
        if runs:
            test = 100 * _mean(runs, cell.metric.replace("val_", "test_", 1))
            lines.append(f"{cell}: test {test:.2f} %, {len(runs)} runs")
        else:
            lines.append(f"{cell}: not finished")
    return lines


class _Trainer:
    """Trains candidates until the time limit and stores every result at once."""

    def __init__(
        self,
        search: ModernSearch,
        device: str,
        time_limit: float | None,
        max_batch: int,
        progress: Progress | None,
    ) -> None:
        self.search = search
        self.device = device
        self.max_batch = max_batch
        self.executor = UntilDeadline(_NO_LIMIT if time_limit is None else time_limit, max_batch)
        self.progress = progress or Progress("modern", quiet=True)

    @property
    def is_over(self) -> bool:
        return self.executor.is_over

    def limited_to(self, share: float) -> "_Trainer":
        """Return a trainer that stops after a share of the time that is left."""
        seconds = share * max(0.0, self.executor.end - time.monotonic())
        return _Trainer(self.search, self.device, seconds, self.max_batch, self.progress)

    def train(self, cell: Cell, configs: Sequence[RunConfig], seeds: Sequence[int]) -> list[str]:
        """Train the missing runs of a cell. Return a line for every run that failed."""
        records = self.search.records
        column = cell.column
        num_runs = len(configs) * len(seeds)
        self.progress.start(num_runs, num_runs)
        lines: list[str] = []
        # Draws of one structure follow each other and are trained as one computation.
        for _, group in groupby(configs, _structure):
            if self.is_over:
                break
            graph = find_graph(column.dataset, self.search.root)
            specs = [
                RunSpec(graph, column.protocol, seed, config) for config in group for seed in seeds
            ]
            lines += train_until(specs, records, self.executor, self.progress, self.device)
        return lines


def _structure(config: RunConfig) -> Settings:
    """Return the settings that decide the shape of the computation."""
    settings = config.to_dict()
    return {name: settings[name] for name in settings if name not in NUMBERS}


def _best(
    runs_of: Sequence[tuple[Candidate, Sequence[Record]]], metric: str, count: int
) -> list[Candidate]:
    """Return the candidates whose runs have the best mean. Those without runs are left out."""
    scores = []
    for number, (candidate, runs) in enumerate(runs_of):
        if runs:
            # Means that only differ by the order of their sum are equal; the first draw wins.
            scores.append((-round(_mean(runs, metric), 6), number, candidate))
    scores.sort(key=lambda score: score[:2])
    return [candidate for _, _, candidate in scores[:count]]


def _mean(runs: Sequence[Record], metric: str) -> float:
    """Return the mean of a metric. A run on which it is undefined has the worst value."""
    return sum(run.metrics.get(metric, 0.0) for run in runs) / len(runs)
