"""Make the runs that tables need and the database lacks."""

from collections.abc import Sequence
from pathlib import Path

from nfgnn.errors import UserError
from nfgnn.paper.find_graph import find_fingerprint, find_graph
from nfgnn.paper.table_plan import Cell, Plan
from nfgnn.progress import Progress
from nfgnn.training import Executor, Record, RecordResults, Records, RunSpec, execute

Found = dict[Cell, list[Record]]
"""The records of every cell, in the order of the seeds."""


def run_missing(
    plans: Sequence[Plan],
    records: Records,
    root: Path | None,
    executor: Executor,
    progress: Progress,
    device: str = "auto",
) -> list[str]:
    """Make the runs that the plans need and the database lacks.

    Returns:
        One line for every graph or run that was not possible.
    """
    specs, notes = _specs(plans, records, root)
    failures = execute(specs, RecordResults(records, device), executor, progress, device)
    notes += [failure.line for failure in failures]
    return list(dict.fromkeys(notes))


def collect(plan: Plan, root: Path | None, records: Records) -> Found:
    """Return the records of a plan."""
    found: Found = {}
    for (label, column), config in plan.configs.items():
        runs: list[Record] = []
        try:
            fingerprint = find_fingerprint(column.dataset, root, records)
        except UserError:
            fingerprint = None
        if fingerprint is not None and plan.spec.by_device:
            runs = records.find_timed(fingerprint, column.protocol, config, plan.seeds)
        elif fingerprint is not None:
            by_seed = records.find(fingerprint, column.protocol, config.to_dict(), plan.seeds)
            runs = list(by_seed.values())
        found[label, column] = sorted(runs, key=lambda run: run.seed)
    return found


def _specs(
    plans: Sequence[Plan], records: Records, root: Path | None
) -> tuple[list[RunSpec], list[str]]:
    """Return the runs of incomplete cells, graph by graph, and notes on graphs that are missing.

    A graph whose cells are complete is not loaded, so its files may be missing.
    """
    datasets = list(dict.fromkeys(column.dataset for plan in plans for column in plan.columns))
    specs: list[RunSpec] = []
    notes = []
    for dataset in datasets:
        own: list[RunSpec] = []
        try:
            for plan in plans:
                own += _specs_of_graph(plan, dataset, records, root)
        except UserError as error:
            notes.append(f"{dataset}: {error}")
        # The seeds in turn, so that an interrupted table has about as many runs in every cell.
        specs += sorted(own, key=lambda spec: spec.seed)
    return specs, notes


def _specs_of_graph(plan: Plan, dataset: str, records: Records, root: Path | None) -> list[RunSpec]:
    specs = []
    timed = plan.spec.by_device
    for (_, column), config in plan.configs.items():
        if column.dataset != dataset:
            continue
        fingerprint = find_fingerprint(dataset, root, records)
        # Which timed runs are missing depends on the machine, see RecordResults.
        if fingerprint is not None and not timed:
            found = records.find(fingerprint, column.protocol, config.to_dict(), plan.seeds)
            if len(found) == len(plan.seeds):
                continue
        graph = find_graph(dataset, root)
        specs += [RunSpec(graph, column.protocol, seed, config, timed) for seed in plan.seeds]
    return specs
