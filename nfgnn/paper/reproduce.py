"""Make the runs that tables need and the database lacks."""

from collections.abc import Sequence
from pathlib import Path

from nfgnn.errors import UserError
from nfgnn.paper.graphs import graph, known_fingerprint
from nfgnn.paper.table_plan import Cell, Plan
from nfgnn.progress import Progress
from nfgnn.training import (
    Executor,
    Record,
    RecordResults,
    Records,
    RunConfig,
    RunSpec,
    execute,
)

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
    specs, notes = _missing_specs(plans, records, root)
    failures = execute(specs, RecordResults(records, device), executor, progress, device)
    notes += [failure.line for failure in failures]
    return list(dict.fromkeys(notes))


def collect(plan: Plan, root: Path | None, records: Records) -> Found:
    """Return the records of a plan."""
    found: Found = {}
    for (label, column), config in plan.configs.items():
        fingerprint = _fingerprint_or_none(column.dataset, root, records)
        runs: list[Record] = []
        if fingerprint is not None and plan.spec.by_device:
            runs = records.find_timed(fingerprint, column.protocol, config, plan.seeds)
        elif fingerprint is not None:
            by_seed = records.find(fingerprint, column.protocol, config.to_dict(), plan.seeds)
            runs = list(by_seed.values())
        found[label, column] = sorted(runs, key=lambda run: run.seed)
    return found


def _missing_specs(
    plans: Sequence[Plan], records: Records, root: Path | None
) -> tuple[list[RunSpec], list[str]]:
    """Return the runs that may be missing, graph by graph, and notes on missing graphs."""
    cells = [
        (column, config, plan.seeds, plan.spec.by_device)
        for plan in plans
        for (_, column), config in plan.configs.items()
    ]
    datasets = list(dict.fromkeys(column.dataset for column, *_ in cells))
    specs: list[RunSpec] = []
    notes = []
    for dataset in datasets:
        own = [cell for cell in cells if cell[0].dataset == dataset]
        try:
            fingerprint = known_fingerprint(dataset, root, records)
            for column, config, seeds, timed in own:
                if _complete(records, fingerprint, column.protocol, config, seeds, timed):
                    continue
                source = graph(dataset, root)  # raises if it is not available
                specs += [RunSpec(source, column.protocol, s, config, timed) for s in seeds]
        except UserError as error:
            notes.append(f"{dataset}: {error}")
    order = {dataset: position for position, dataset in enumerate(datasets)}
    return sorted(specs, key=lambda spec: (order[spec.graph.source], spec.seed)), notes


def _complete(
    records: Records,
    fingerprint: str | None,
    protocol: str,
    config: RunConfig,
    seeds: Sequence[int],
    timed: bool,
) -> bool:
    """Whether all runs of a cell are recorded. Timed runs depend on the machine."""
    if fingerprint is None or timed:
        return False
    return len(records.find(fingerprint, protocol, config.to_dict(), seeds)) == len(seeds)


def _fingerprint_or_none(dataset: str, root: Path | None, records: Records) -> str | None:
    try:
        return known_fingerprint(dataset, root, records)
    except UserError:
        return None
