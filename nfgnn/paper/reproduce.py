"""Run what is missing of a table, and nothing else.

Every run that is finished is in the database before the next begins, so a command that was killed goes on where it
stopped. On a GPU many seeds of a cell are one computation; on a CPU a run has one thread, and several runs may have a
process each.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from nfgnn.errors import UserError
from nfgnn.paper.graphs import facts, graph, known_fingerprint
from nfgnn.paper.table_plan import Cell, Plan
from nfgnn.training import RunConfig
from nfgnn.training.cells import TIMED, Tell, runs_at_once, takes_as_long, timed_protocol
from nfgnn.training.classifier import resolve_device
from nfgnn.training.jobs import Job, Place, train
from nfgnn.training.process_pool import one_thread, side_by_side
from nfgnn.training.ray_tasks import on_cluster
from nfgnn.training.records.database import Record, Records
from nfgnn.work_progress import WorkDisplay

Found = dict[Cell, list[Record]]
"""The records of every cell, in the order of the seeds."""


def run_missing(
    plans: Sequence[Plan],
    place: Place,
    display: WorkDisplay,
    workers: int = 1,
    engine: str = "local",
    address: str | None = None,
) -> list[str]:
    """Run what the plans need and the database lacks. Returns what could not be run, and why, a sentence each.

    With ``engine="ray"`` the runs are tasks of the Ray cluster at ``address``.
    """
    if engine not in ("local", "ray"):
        raise UserError(f"--engine {engine} is not known: choose local or ray")
    with Records(place.database) as records:
        jobs, notes = _jobs(plans, place, records)
        if engine == "ray" and any(job.timed for job in jobs):
            raise UserError("times are measured on this machine: leave out --engine ray")
        on_cpu = resolve_device(place.device).type == "cpu"
        display.start([_cost(job, place.root) for job in jobs], [len(job.seeds) for job in jobs])
        results: Iterator[tuple[Job, str | None]]
        with one_thread(on_cpu):
            if engine == "ray" and jobs:
                sent = on_cluster(jobs, place, address, display.say)
                results = ((job, _note(outcome, records)) for job, outcome in sent)
            elif workers > 1 and on_cpu and not any(job.timed for job in jobs):
                made = side_by_side(do, [(job, place) for job in jobs], workers)
                results = ((job, outcome) for (job, _), outcome in made)
            else:
                results = (
                    (job, do(job, place, records, display.following(job.label))) for job in jobs
                )
            for job, outcome in results:
                display.advance(_cost(job, place.root), len(job.seeds), job.label)
                if isinstance(outcome, str):
                    notes.append(f"{job.label}: {outcome}")
    return list(dict.fromkeys(notes))


def collect(plan: Plan, root: Path | None, records: Records) -> Found:
    """What the database knows of a plan."""
    found: Found = {}
    for (label, column), config in plan.configs.items():
        known = _fingerprint_or_none(column.dataset, root, records)
        if known is None:
            found[label, column] = []
            continue
        timed, names = plan.spec.by_device, [column.protocol]
        if timed:
            names = [
                name
                for name in records.protocols(known)
                if name.startswith(column.protocol + TIMED)
            ]
        runs = [
            run
            for name in names
            for run in _find(records, known, name, config, plan.seeds, timed).values()
        ]
        found[label, column] = sorted(runs, key=lambda run: run.seed)
    return found


def do(
    job: Job, place: Place, records: Records | None = None, tell: Tell | None = None
) -> str | None:
    """Train and record one job. A mistake or a lack of the machine's is returned as a sentence."""
    if records is None:  # in a process of its own
        with Records(place.database) as own:
            return do(job, place, own)
    return _note(train(job, place, tell), records)


def _note(outcome: list[Record] | str, records: Records) -> str | None:
    if isinstance(outcome, str):
        return outcome
    records.add(outcome)
    return None


def _jobs(plans: Sequence[Plan], place: Place, records: Records) -> tuple[list[Job], list[str]]:
    """The computations that are missing, graph by graph, so that few graphs are in memory."""
    jobs: list[Job] = []
    notes, seen = [], set()
    cells = [
        (column, config, plan.seeds, plan.spec.by_device)
        for plan in plans
        for (_, column), config in plan.configs.items()
    ]
    for dataset in dict.fromkeys(column.dataset for column, *_ in cells):
        try:
            known = known_fingerprint(dataset, place.root, records)
            for column, config, seeds, timed in (
                cell for cell in cells if cell[0].dataset == dataset
            ):
                values = config.to_dict()
                protocol = (
                    timed_protocol(column.protocol, place.device) if timed else column.protocol
                )
                found = _find(records, known, protocol, config, seeds, timed) if known else {}
                missing = [
                    s
                    for s in seeds
                    if s not in found and (protocol, dataset, str(values), s) not in seen
                ]
                seen |= {(protocol, dataset, str(values), seed) for seed in missing}
                jobs += _cut(dataset, column.protocol, config, missing, place, timed)
        except UserError as error:
            notes.append(f"{dataset}: {error}")
    order = {dataset: i for i, dataset in enumerate(dict.fromkeys(job.dataset for job in jobs))}
    return sorted(jobs, key=lambda job: (order[job.dataset], job.seeds[0])), notes


def _find(
    records: Records,
    known: str,
    protocol: str,
    config: RunConfig,
    seeds: Sequence[int],
    timed: bool,
) -> dict[int, Record]:
    """The runs of a configuration; where their time counts, of all that take as long."""
    if timed:
        return records.find_alike(known, protocol, takes_as_long(config), seeds)
    return records.find(known, protocol, config.to_dict(), seeds)


def _cut(
    dataset: str, protocol: str, config: RunConfig, seeds: list[int], place: Place, timed: bool
) -> Iterator[Job]:
    """As many seeds at once as the device takes; one where its time counts."""
    if seeds:
        data = graph(dataset, place.root)  # here it turns out if it is not on this machine
        at_once = 1 if timed else runs_at_once(data, protocol, config, place.device)
        for start in range(0, len(seeds), at_once):
            yield Job(dataset, protocol, config, tuple(seeds[start : start + at_once]), timed)


def _cost(job: Job, root: Path | None) -> float:
    """Work of a job, roughly: what the display's estimate of the time left goes by."""
    return len(job.seeds) * (5000.0 + facts(job.dataset, root)[1])


def _fingerprint_or_none(dataset: str, root: Path | None, records: Records) -> str | None:
    try:
        return known_fingerprint(dataset, root, records)
    except UserError:
        return None
