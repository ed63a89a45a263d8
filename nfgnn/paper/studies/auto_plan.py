"""The plan of the evaluation of ``nfgnn auto``: graphs, methods and seeds.

``auto`` is compared with what a user would do otherwise: train a model with its defaults, train
NFGNN with the searched preset of the graph, or search NFGNN's settings for as long with ``tune``.
Every graph counts as unknown: the portfolio of ``auto`` is selected without it, and neither
defaults nor ``tune`` read its preset.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nfgnn.errors import UserError
from nfgnn.nn import MODELS
from nfgnn.paper.search.portfolio_candidates import Column, portfolio_columns
from nfgnn.paper.table_plan import FIRST_REPORT_SEED
from nfgnn.training import RunConfig
from nfgnn.training.presets import preset

AUTO = "auto"
TUNE = "tune"
PRESET = "preset"
DEFAULTS = "defaults"
KINDS = (AUTO, TUNE, PRESET, DEFAULTS)
MODEL = "NFGNN"
"""The model of the presets and of ``tune``."""
SEEDS = range(2 * FIRST_REPORT_SEED, 2 * FIRST_REPORT_SEED + 3)
"""Of splits and models. Lower seeds were seen while ``auto`` was built."""
SECONDS = 300.0
"""The budget of ``auto`` and ``tune`` in the comparison."""
CLASSICAL_PROTOCOL = "full"
"""Protocol of the ten graphs of the paper."""


@dataclass(frozen=True)
class Task:
    """One number of the evaluation."""

    graph: str
    seed: int
    method: str
    """:data:`AUTO`, :data:`TUNE`, :data:`PRESET`, or the model that is trained with defaults."""
    seconds: float | None = None
    """The budget of a search."""


@dataclass(frozen=True)
class Job:
    """Tasks that one process works on."""

    column: Column
    tasks: tuple[Task, ...]

    @property
    def least_seconds(self) -> float:
        """Time that must be left when the job starts."""
        search = self.tasks[0].seconds
        if search is None:
            return 0.0
        # Searches keep their budget within 10 %. `tune` trains its winner afterwards.
        return 1.1 * search + 5.0 * len(self.tasks)


def evaluation_columns(names: Sequence[str] | None = None) -> list[Column]:
    """Return the graphs of the evaluation, each with one protocol, or those with these names."""
    columns: dict[str, Column] = {}
    for column in portfolio_columns():
        columns.setdefault(column.name, column)
    unknown = [name for name in names or () if name not in columns]
    if unknown:
        raise UserError(f"'{unknown[0]}' is not evaluated: choose from {', '.join(columns)}")
    return [columns[name] for name in names or columns]


def evaluation_jobs(
    columns: Sequence[Column], kinds: Sequence[str], budgets: Sequence[float], seeds: Sequence[int]
) -> list[Job]:
    """Return all jobs, those that take longest first.

    The runs of one configuration are one job, because a GPU trains them as one computation.
    ``tune`` searches with seeds of its own: one search serves all report seeds.
    """
    jobs = []
    for seconds in sorted(budgets, reverse=True):
        if AUTO in kinds:
            for seed in seeds:
                for column in columns:
                    jobs.append(Job(column, (Task(column.name, seed, AUTO, seconds),)))
        if TUNE in kinds:
            for column in columns:
                tasks = [Task(column.name, seed, TUNE, seconds) for seed in seeds]
                jobs.append(Job(column, tuple(tasks)))
    methods = [PRESET] if PRESET in kinds else []
    methods += MODELS if DEFAULTS in kinds else []
    for method in methods:
        for column in columns:
            if method != PRESET or has_preset(column):
                tasks = [Task(column.name, seed, method) for seed in seeds]
                jobs.append(Job(column, tuple(tasks)))
    return jobs


def has_preset(column: Column) -> bool:
    """Whether there is a searched preset for this graph and protocol."""
    return preset(MODEL, column.name, column.protocol) != preset(MODEL, None, None)


def run_config(column: Column, method: str) -> RunConfig:
    """Return the configuration of a method without a search."""
    if method == PRESET:
        return RunConfig.resolve(MODEL, {}, column.name, column.protocol)
    return RunConfig.resolve(method, {}, None, column.protocol)
