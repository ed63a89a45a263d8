"""One computation of a table: what is trained, where, and what comes of it."""

from dataclasses import dataclass, replace
from pathlib import Path

from nfgnn.errors import UserError
from nfgnn.paper.graphs import graph
from nfgnn.training import RunConfig
from nfgnn.training.cells import Tell, timed_protocol, train_runs
from nfgnn.training.records.database import Record


@dataclass(frozen=True)
class Job:
    """One computation: a configuration on one or several splits of a graph."""

    dataset: str
    protocol: str
    config: RunConfig
    seeds: tuple[int, ...]
    timed: bool = False
    """Whether it is run for its time: alone, and recorded for this machine."""

    @property
    def label(self) -> str:
        seeds = f"seed {self.seeds[0]}" if len(self.seeds) == 1 else f"{len(self.seeds)} seeds"
        return f"{self.config.model} on {self.dataset} ({self.protocol}), {seeds}"


@dataclass(frozen=True)
class Place:
    """Where a job finds its graph, trains, and leaves its records."""

    database: Path
    root: Path | None
    device: str


def train(job: Job, place: Place, tell: Tell | None = None) -> list[Record] | str:
    """The records of a job. A mistake or a lack of the machine's is returned as a sentence."""
    try:
        data = graph(job.dataset, place.root)
        runs = [(job.config, seed) for seed in job.seeds]
        if job.timed:  # a few epochs, so that no kernel is compiled while the clock runs
            few = replace(job.config, training=replace(job.config.training, epochs=3))
            train_runs(data, job.protocol, [(few, job.seeds[0])], place.device, test=False)
        records = train_runs(data, job.protocol, runs, place.device, tell=tell)
        if job.timed:
            return [
                replace(record, protocol=timed_protocol(record.protocol, place.device))
                for record in records
            ]
        return records
    except UserError as error:
        return str(error)
    except (MemoryError, RuntimeError) as error:  # torch tells of a lack of memory by the latter
        if isinstance(error, RuntimeError) and "allocate memory" not in str(error):
            raise
        return "there is not enough memory"
