"""The contents of tables: means, intervals, the paper's values and paired tests from records."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from nfgnn.data import REGISTRY
from nfgnn.paper.reproduce import Found
from nfgnn.paper.statistics import Comparison, holm, paired
from nfgnn.paper.table_plan import Plan, graph_name
from nfgnn.paper.table_registry import (
    BEST_OTHER,
    Column,
    PublishedRow,
    paper_values,
    published_rows,
)
from nfgnn.training import Record, summarise

OURS = ("NFGNN", "NFNet", "PolyGNN", "ScalableNFGNN")
"""Models that do not count as another model."""
MARKED_UNITS = ("%", "nats")
"""Units of tables that show the best value of a column in bold. Times of different machines cannot
be compared."""
UNITS = {
    "epoch_ms": "ms",
    "seconds": "s",
    "test_log_loss": "nats",
    "observed_log_loss": "nats",
    "unobserved_log_loss": "nats",
}
"""Units of the metrics that are not shares. Of all of them, a lower value is better."""


@dataclass(frozen=True)
class Entry:
    """One cell: measured values in percent (times in their unit), and the paper's value."""

    values: Mapping[int, float]
    """By seed."""
    paper: tuple[float, float | None] | None
    """Mean and half-width of its interval."""
    best: bool = False
    """Whether the mean is the best of the column."""
    dead: tuple[int, ...] = ()
    """Seeds of the runs that never rose above chance. They are part of ``values``."""

    @property
    def mean(self) -> float:
        return float(summarise(list(self.values.values()))["mean"])

    @property
    def ci95(self) -> float | None:
        interval: float | None = summarise(list(self.values.values()))["ci95"]
        return interval

    def without_dead(self) -> "Entry":
        """Return the cell with the other runs only."""
        others = {seed: value for seed, value in self.values.items() if seed not in self.dead}
        return replace(self, values=others, dead=())


@dataclass(frozen=True)
class PairedTest:
    """A paired test of one model against another on the same splits, in points."""

    column: str
    model: str
    against: str
    result: Comparison
    p_holm: float | None = None


@dataclass(frozen=True)
class MeanRank:
    """The mean rank of a model over the graphs with runs. The best model has rank 1."""

    mean: float
    graphs: int


@dataclass(frozen=True)
class Table:
    """Everything that is written about one metric of a table."""

    name: str
    title: str
    metric: str
    unit: str
    columns: Sequence[Column]
    rows: dict[str, list[Entry]]
    tests: list[PairedTest]
    seeds: range
    machines: list[str]
    command: str
    notes: list[str]
    graph_notes: tuple[str, ...] = ()
    """A line about every graph of the user."""
    published: tuple[PublishedRow, ...] = ()
    """Values of other papers for these columns."""
    settings_note: str = ""
    """How the settings of the models were chosen."""
    ranks: Mapping[str, MeanRank] = field(default_factory=dict)
    """Mean ranks by label, over the graphs of all parts. Only the first part has them."""
    unranked: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Headings of the graphs on which a model without a mean rank has no runs, by label. Only the
    first part has them."""

    @property
    def lower_is_better(self) -> bool:
        """Whether the metric is a loss or a time."""
        return self.metric in UNITS

    def best_mean(self, entries: Sequence[Entry]) -> float | None:
        """Return the best mean of the entries that have runs, or ``None`` if there are none."""
        means = [entry.mean for entry in entries if entry.values]
        if not means:
            return None
        return min(means) if self.lower_is_better else max(means)

    def heading(self, column: Column) -> str:
        """Return the title of the graph, with the protocol where the table has several."""
        entry = REGISTRY.get(column.dataset)
        title = entry.title.removeprefix("Amazon ") if entry else graph_name(column.dataset)
        several = len({column.protocol for column in self.columns}) > 1
        return f"{title} ({column.protocol})" if several else title

    def cells_with_dead_runs(self) -> list[tuple[str, Column, Entry]]:
        """Return label, column and content of the cells with runs that never rose above chance."""
        return [
            (label, column, entry)
            for label, entries in self.rows.items()
            for column, entry in zip(self.columns, entries)
            if entry.dead
        ]


def make_tables(plan: Plan, found: Found, command: str, notes: Sequence[str] = ()) -> list[Table]:
    """Return one table per metric. A metric of the table that no run has is left out.

    Args:
        plan: what to show.
        found: the records of every cell.
        command: the command that makes the table.
        notes: reasons why runs are missing.
    """
    tables: list[Table] = []
    every_metric = [metric for column in plan.columns for metric in plan.metrics[column]]
    whole = plan
    for metric in dict.fromkeys(every_metric):
        columns = tuple(c for c in whole.columns if metric in whole.metrics[c])
        plan = replace(whole, columns=columns)
        if plan.spec.by_device:
            rows = _device_rows(plan, found, metric)
        else:
            rows = _model_rows(plan, found, metric)
        empty = not any(entry.values for entries in rows.values() for entry in entries)
        if empty and tables and whole.spec.metrics:
            continue
        unit = UNITS.get(metric, "%")
        table = Table(
            name=plan.name,
            title=plan.spec.title,
            metric=metric,
            unit=unit,
            columns=plan.columns,
            rows=rows,
            tests=[],
            seeds=plan.seeds,
            machines=_machines(found),
            command=command,
            notes=list(notes),
            graph_notes=plan.graph_notes,
            published=_published(plan),
            settings_note=plan.spec.settings_note,
        )
        tables.append(_mark_best(table) if unit in MARKED_UNITS else table)
    # Without metrics of its own a table has every graph once, so its parts are one family of tests.
    families = [[table] for table in tables] if whole.spec.metrics else [tables]
    tables = [table for family in families for table in _with_tests(whole, family)]
    if whole.spec.ranked:
        missing = missing_graphs(tables)
        ranks = mean_ranks(tables, [label for label in missing if not missing[label]])
        unranked = {label: graphs for label, graphs in missing.items() if graphs}
        tables[0] = replace(tables[0], ranks=ranks, unranked=unranked)
    return tables


def _published(plan: Plan) -> tuple[PublishedRow, ...]:
    """Return the published rows with a value for a graph of the plan, narrowed to these graphs."""
    datasets = {column.dataset for column in plan.columns if column in plan.spec.columns}
    rows = []
    for row in published_rows(plan.name):
        values = {name: value for name, value in row.values.items() if name in datasets}
        if values:
            rows.append(replace(row, values=values))
    return tuple(rows)


def missing_graphs(tables: Sequence[Table]) -> dict[str, list[str]]:
    """Return the graphs on which a model has no runs but another one has, by label of the model."""
    missing: dict[str, list[str]] = {label: [] for table in tables for label in table.rows}
    for table in tables:
        for place, column in enumerate(table.columns):
            has_runs = {label: bool(row[place].values) for label, row in table.rows.items()}
            if not any(has_runs.values()):
                continue
            for label in missing:
                if not has_runs.get(label):
                    missing[label].append(table.heading(column))
    return missing


def mean_ranks(tables: Sequence[Table], labels: Sequence[str]) -> dict[str, MeanRank]:
    """Return the mean rank of models over the graphs with runs.

    On every graph the models are ranked by their mean, the best first. Equal ones share the mean of
    their ranks.

    Args:
        tables: the parts of a table.
        labels: models with runs on all these graphs. Ranks among different numbers of models, or
            over different graphs, could not be compared.
    """
    from scipy.stats import rankdata

    ranks: dict[str, list[float]] = {label: [] for label in labels}
    for table in tables:
        for place in range(len(table.columns)):
            entries = [table.rows[label][place] for label in labels]
            if not all(entry.values for entry in entries):
                continue  # No model has runs here.
            sign = 1 if table.lower_is_better else -1
            for label, rank in zip(labels, rankdata([sign * entry.mean for entry in entries])):
                ranks[label].append(float(rank))
    return {label: MeanRank(sum(own) / len(own), len(own)) for label, own in ranks.items() if own}


def _model_rows(plan: Plan, found: Found, metric: str) -> dict[str, list[Entry]]:
    rows = {}
    for row in plan.rows:
        rows[row.label] = [
            _entry(plan, row.paper, column, found.get((row.label, column), []), metric)
            for column in plan.columns
        ]
    return rows


def _device_rows(plan: Plan, found: Found, metric: str) -> dict[str, list[Entry]]:
    """Return a row per model and machine, because times of different machines do not mix."""
    rows: dict[str, list[Entry]] = {}
    for row in plan.rows:
        cells = [found.get((row.label, column), []) for column in plan.columns]
        machines = sorted({_short_machine(run) for runs in cells for run in runs})
        for machine in machines or [""]:
            entries = []
            for column, runs in zip(plan.columns, cells):
                own = [run for run in runs if _short_machine(run) == machine]
                entries.append(_entry(plan, row.paper, column, own, metric))
            rows[f"{row.label}, {machine}" if machine else row.label] = entries
    return rows


def _short_machine(record: Record) -> str:
    return f"{record.device} ({record.machine.partition(',')[0]})"


def _machines(found: Found) -> list[str]:
    """Return the devices and machines of the runs, each with its number of runs."""
    counts = Counter(f"{run.device} ({run.machine})" for runs in found.values() for run in runs)
    return [f"{machine}: {count} runs" for machine, count in sorted(counts.items())]


def _entry(
    plan: Plan, paper_row: str | None, column: Column, runs: Sequence[Record], metric: str
) -> Entry:
    values = {}
    for run in runs:
        value = measured(run, metric)
        if value is not None:
            values[run.seed] = value
    dead = tuple(run.seed for run in runs if run.dead and run.seed in values)
    rows = paper_values().get(plan.name, {}).get(metric, {})
    published = rows.get(paper_row or "", {}).get(column.dataset)
    # The paper has no value for a graph that the user added, or under another protocol.
    if column not in plan.spec.columns or published is None or published[0] is None:
        return Entry(values, None, dead=dead)
    return Entry(values, (published[0], published[1]), dead=dead)


def measured(record: Record, metric: str) -> float | None:
    """Return a metric of a run in the unit of the table, or ``None`` if it was not measured."""
    if metric == "epoch_ms":
        return 1000 * record.metrics["seconds"] / max(record.metrics["epochs"], 1)
    value = record.metrics.get(metric)
    if value is None:
        return None
    return value if metric in UNITS else 100 * value


def _mark_best(table: Table) -> Table:
    """Mark the best mean of every column."""
    marked: dict[str, list[Entry]] = {label: [] for label in table.rows}
    for column in zip(*table.rows.values()):
        best = table.best_mean(column)
        for label, entry in zip(table.rows, column):
            is_best = bool(entry.values) and entry.mean == best
            marked[label].append(replace(entry, best=is_best))
    return replace(table, rows=marked)


def _with_tests(plan: Plan, tables: Sequence[Table]) -> list[Table]:
    """Return the tables with their tests. Holm's correction is over the columns of one pair."""
    tests: list[list[PairedTest]] = [[] for _ in tables]
    for model, against in plan.spec.comparisons:
        family: list[tuple[int, PairedTest]] = []
        for part, table in enumerate(tables):
            for i in range(len(table.columns)):
                test = _paired_test(plan, table, i, model, against)
                if test is not None:
                    family.append((part, test))
        # Headings may be equal, so the tests of a family are told apart by their place.
        p_values = {
            place: test.result.p
            for place, (_, test) in enumerate(family)
            if test.result.p is not None
        }
        corrected = dict(zip(p_values, holm(list(p_values.values()))))
        for place, (part, test) in enumerate(family):
            tests[part].append(replace(test, p_holm=corrected.get(place)))
    return [replace(table, tests=own) for table, own in zip(tables, tests)]


def _paired_test(plan: Plan, table: Table, i: int, model: str, against: str) -> PairedTest | None:
    """Test a model against another in column ``i``, if both have runs there."""
    if against == BEST_OTHER:
        others = [row.label for row in plan.rows if row.model not in OURS]
        best = table.best_mean([table.rows[label][i] for label in others])
        entries = [(label, table.rows[label][i]) for label in others]
        equal = [label for label, entry in entries if entry.values and entry.mean == best]
        against = equal[0] if equal else ""
    if model not in table.rows or against not in table.rows:
        return None
    first = table.rows[model][i].values
    second = table.rows[against][i].values
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return None
    result = paired([first[seed] for seed in seeds], [second[seed] for seed in seeds])
    return PairedTest(table.heading(table.columns[i]), model, against, result)
