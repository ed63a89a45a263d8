"""Tables of results as plain data: records in, means, intervals, the paper's values and paired tests out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nfgnn.data import REGISTRY
from nfgnn.paper.items import BEST_OTHER, Column, paper_values
from nfgnn.paper.plan import Plan
from nfgnn.paper.reproduce import Found
from nfgnn.paper.statistics import holm, paired
from nfgnn.training.metrics import summarise
from nfgnn.training.records.database import Record

OURS = ("NFGNN", "PolyGNN", "ScalableNFGNN")
"""Models that are no "other" model."""
UNITS = {"epoch_ms": "ms", "seconds": "s"}


@dataclass(frozen=True)
class Entry:
    """One cell: what was measured, in percent (times: in their unit), and the paper's value."""

    values: Mapping[int, float]
    """By seed."""
    paper: tuple[float, float | None] | None
    best: bool = False

    @property
    def mean(self) -> float:
        return float(summarise(list(self.values.values()))["mean"])

    @property
    def ci95(self) -> float | None:
        interval: float | None = summarise(list(self.values.values()))["ci95"]
        return interval


@dataclass(frozen=True)
class PairedTest:
    """A paired test of one model against another on the same splits; the difference in points."""

    column: str
    model: str
    against: str
    difference: float
    ci95: float | None
    p: float | None
    p_holm: float | None
    runs: int


@dataclass(frozen=True)
class Table:
    """All that is written of one metric of one item."""

    item: str
    title: str
    metric: str
    unit: str
    columns: list[Column]
    rows: dict[str, list[Entry]]
    tests: list[PairedTest]
    runs: int
    seeds: range
    machines: list[str]
    command: str
    notes: list[str]

    def heading(self, column: Column) -> str:
        """The graph's name, with the protocol where there are several."""
        entry = REGISTRY.get(column.dataset)
        title = entry.title.removeprefix("Amazon ") if entry else column.dataset
        several = len({c.protocol for c in self.columns}) > 1
        return f"{title} ({column.protocol})" if several else title


def make_tables(plan: Plan, found: Found, command: str, notes: Sequence[str] = ()) -> list[Table]:
    """One table per metric of the item; a metric that no run has is left out."""
    tables: list[Table] = []
    for metric in plan.item.metrics:
        rows = (
            _device_rows(plan, found, metric)
            if plan.item.by_device
            else _model_rows(plan, found, metric)
        )
        if not any(entry.values for entries in rows.values() for entry in entries) and tables:
            continue
        unit = UNITS.get(metric, "%")
        rows = _mark_best(rows) if unit == "%" else rows
        table = Table(
            plan.name, plan.item.title, metric, unit, list(plan.columns), rows, [], len(plan.seeds), plan.seeds,
            _machines(found), command, list(notes),
        )  # fmt: skip
        tables.append(replace(table, tests=_tests(plan, table)))
    return tables


def _model_rows(plan: Plan, found: Found, metric: str) -> dict[str, list[Entry]]:
    return {
        row.label: [_entry(plan, row.paper, c, found[row.label, c], metric) for c in plan.columns]
        for row in plan.rows
    }


def _device_rows(plan: Plan, found: Found, metric: str) -> dict[str, list[Entry]]:
    """A row per model and machine: times of different machines do not mix."""
    rows: dict[str, list[Entry]] = {}
    for row in plan.rows:
        machines = sorted(
            {_machine(record) for column in plan.columns for record in found[row.label, column]}
        )
        for machine in machines or [""]:
            entries = []
            for column in plan.columns:
                runs = [
                    record for record in found[row.label, column] if _machine(record) == machine
                ]
                entries.append(_entry(plan, row.paper, column, runs, metric))
            rows[f"{row.label}, {machine}" if machine else row.label] = entries
    return rows


def _machine(record: Record) -> str:
    return f"{record.device} ({record.machine.partition(',')[0]})"


def _entry(
    plan: Plan, paper: str | None, column: Column, runs: Sequence[Record], metric: str
) -> Entry:
    values = {r.seed: value for r in runs if (value := measured(r, metric)) is not None}
    known = (
        paper_values().get(plan.name, {}).get(metric, {}).get(paper or "", {}).get(column.dataset)
    )
    same = any(c == column for c in plan.item.columns)
    if known is None or not same or known[0] is None:
        return Entry(values, None)
    return Entry(values, (known[0], known[1]))


def measured(record: Record, metric: str) -> float | None:
    """A metric of a run in the table's unit; ``epoch_ms`` follows from seconds and epochs."""
    if metric == "epoch_ms":
        return 1000 * record.metrics["seconds"] / max(record.metrics["epochs"], 1)
    value = record.metrics.get(metric)
    return None if value is None else value * (1 if metric in UNITS else 100)


def _mark_best(rows: dict[str, list[Entry]]) -> dict[str, list[Entry]]:
    """Every column's highest mean is its best."""
    count = len(next(iter(rows.values()), []))
    best = [
        max((e[i].mean for e in rows.values() if e[i].values), default=None) for i in range(count)
    ]
    return {
        label: [replace(e, best=bool(e.values) and e.mean == b) for e, b in zip(entries, best)]
        for label, entries in rows.items()
    }


def _tests(plan: Plan, table: Table) -> list[PairedTest]:
    """The paired tests of the item. Holm's correction is over the columns of one pair of models."""
    tests: list[PairedTest] = []
    for model, against in plan.item.comparisons():
        family = [
            t
            for i in range(len(plan.columns))
            if (t := _test(plan, table, i, model, against)) is not None
        ]
        known = [test for test in family if test.p is not None]
        corrected = dict(
            zip((t.column for t in known), holm([t.p for t in known if t.p is not None]))
        )
        tests += [replace(test, p_holm=corrected.get(test.column)) for test in family]
    return tests


def _test(plan: Plan, table: Table, i: int, model: str, against: str) -> PairedTest | None:
    if against == BEST_OTHER:
        others = [
            row.label
            for row in plan.rows
            if row.model not in OURS and table.rows[row.label][i].values
        ]
        against = max(others, key=lambda label: table.rows[label][i].mean, default="")
    if model not in table.rows or against not in table.rows:
        return None
    a, b = table.rows[model][i].values, table.rows[against][i].values
    seeds = sorted(a.keys() & b.keys())
    if not seeds:
        return None
    c = paired([a[s] for s in seeds], [b[s] for s in seeds])
    return PairedTest(
        table.heading(plan.columns[i]), model, against, c.difference, c.ci95, c.p, None, c.runs
    )


def _machines(found: Found) -> list[str]:
    """Devices and machines of the runs, each with its number of runs."""
    counts = Counter(f"{r.device} ({r.machine})" for runs in found.values() for r in runs)
    return [f"{where}: {count} runs" for where, count in sorted(counts.items())]
