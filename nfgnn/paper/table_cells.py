"""The contents of tables: means, intervals, the paper's values and paired tests from records."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nfgnn.data import REGISTRY
from nfgnn.paper.reproduce import Found
from nfgnn.paper.statistics import Comparison, holm, paired
from nfgnn.paper.table_plan import Plan, graph_name
from nfgnn.paper.table_registry import BEST_OTHER, Column, paper_values
from nfgnn.training import Record, summarise

OURS = ("NFGNN", "PolyGNN", "ScalableNFGNN")
"""Models that do not count as another model."""
UNITS = {
    "epoch_ms": "ms",
    "seconds": "s",
    "test_log_loss": "nats",
    "observed_log_loss": "nats",
    "unobserved_log_loss": "nats",
}


@dataclass(frozen=True)
class Entry:
    """One cell: measured values in percent (times in their unit), and the paper's value."""

    values: Mapping[int, float]
    """By seed."""
    paper: tuple[float, float | None] | None
    """Mean and half-width of its interval."""
    best: bool = False
    """Whether the mean is the highest of the column."""
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
    """Return one table per metric. A metric that no run has is left out.

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
        if empty and tables:
            continue
        unit = UNITS.get(metric, "%")
        table = Table(
            name=plan.name,
            title=plan.spec.title,
            metric=metric,
            unit=unit,
            columns=plan.columns,
            rows=_mark_best(rows) if unit == "%" else rows,
            tests=[],
            seeds=plan.seeds,
            machines=_machines(found),
            command=command,
            notes=list(notes),
            graph_notes=plan.graph_notes,
        )
        tables.append(replace(table, tests=_paired_tests(plan, table)))
    return tables


def _model_rows(plan: Plan, found: Found, metric: str) -> dict[str, list[Entry]]:
    rows = {}
    for row in plan.rows:
        rows[row.label] = [
            _entry(plan, row.paper, column, found[row.label, column], metric)
            for column in plan.columns
        ]
    return rows


def _device_rows(plan: Plan, found: Found, metric: str) -> dict[str, list[Entry]]:
    """Return a row per model and machine, because times of different machines do not mix."""
    rows: dict[str, list[Entry]] = {}
    for row in plan.rows:
        cells = [found[row.label, column] for column in plan.columns]
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


def _mark_best(rows: dict[str, list[Entry]]) -> dict[str, list[Entry]]:
    """Mark the highest mean of every column."""
    marked: dict[str, list[Entry]] = {label: [] for label in rows}
    for column in zip(*rows.values()):
        highest = max((entry.mean for entry in column if entry.values), default=None)
        for label, entry in zip(rows, column):
            best = bool(entry.values) and entry.mean == highest
            marked[label].append(replace(entry, best=best))
    return marked


def _paired_tests(plan: Plan, table: Table) -> list[PairedTest]:
    """Return the tests of the table. Holm's correction is over the columns of one pair."""
    tests: list[PairedTest] = []
    for model, against in plan.spec.comparisons:
        family = []
        for i in range(len(plan.columns)):
            test = _paired_test(plan, table, i, model, against)
            if test is not None:
                family.append(test)
        p_values = {test.column: test.result.p for test in family if test.result.p is not None}
        corrected = dict(zip(p_values, holm(list(p_values.values()))))
        tests += [replace(test, p_holm=corrected.get(test.column)) for test in family]
    return tests


def _paired_test(plan: Plan, table: Table, i: int, model: str, against: str) -> PairedTest | None:
    """Test a model against another in column ``i``, if both have runs there."""
    if against == BEST_OTHER:
        others = [row.label for row in plan.rows if row.model not in OURS]
        others = [label for label in others if table.rows[label][i].values]
        against = max(others, key=lambda label: table.rows[label][i].mean, default="")
    if model not in table.rows or against not in table.rows:
        return None
    first = table.rows[model][i].values
    second = table.rows[against][i].values
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return None
    result = paired([first[seed] for seed in seeds], [second[seed] for seed in seeds])
    return PairedTest(table.heading(plan.columns[i]), model, against, result)
