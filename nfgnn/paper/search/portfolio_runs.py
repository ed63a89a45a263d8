"""Train the candidates of the portfolio on all graphs.

Every run is a record, and a recorded run is not repeated. Several processes may share the folder of
the records: each trains what no other one is training. Defaults are trained on all graphs before
further candidates, so the records can be used before all runs are made.
"""

import fcntl
import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from nfgnn.paper.find_graph import find_graph
from nfgnn.paper.search.engine import train_until
from nfgnn.paper.search.portfolio_candidates import Candidate, Column, config_key
from nfgnn.progress import Progress
from nfgnn.training import (
    NUMERIC_SETTINGS,
    Graph,
    RecordResults,
    Records,
    RunConfig,
    RunSpec,
    UntilDeadline,
)

SEEDS = range(2)
"""Search seeds; under ``public`` they are numbers of official splits."""
DATABASE = "portfolio.sqlite"
_CLAIMS = "claims"
_MAX_BATCH = 12


class PortfolioRuns:
    """Trains candidates on graphs until a time limit.

    Args:
        folder: where processes claim the runs that they train.
        records: where every run is kept.
        data: folder of raw datasets, and of the graphs that are given by a path.
        device: where to train.
        time_limit: seconds for everything together.
        task_limit: seconds for the runs that are trained together. A candidate that needs more on a
            graph has no result there.
        progress: the display.
    """

    def __init__(
        self,
        folder: Path,
        records: Records,
        data: Path,
        device: str,
        time_limit: float,
        task_limit: float,
        progress: Progress,
    ) -> None:
        self.folder = folder
        self.records = records
        self.data = data
        self.device = device
        self.end = time.monotonic() + time_limit
        self.task_limit = task_limit
        self.progress = progress

    def train(self, columns: Sequence[Column], candidates: Sequence[Candidate]) -> list[str]:
        """Train the missing runs. Return a line for every run that failed."""
        lines = []
        num_runs = len(columns) * len(candidates) * len(SEEDS)
        self.progress.start(num_runs, num_runs)
        for stage in sorted({candidate.stage for candidate in candidates}):
            of_stage = [candidate for candidate in candidates if candidate.stage == stage]
            for column in columns:
                graph = column_graph(column, self.data)
                configs = [candidate.config.for_graph(graph.data) for candidate in of_stage]
                for group in _same_structure(configs):
                    specs = [
                        RunSpec(graph, column.protocol, seed, config)
                        for config in group
                        for seed in SEEDS
                    ]
                    lines += self._train_group(specs)
        return lines

    def _train_group(self, specs: Sequence[RunSpec]) -> list[str]:
        """Train runs of one structure, unless another process does or they were given up."""
        left = self.end - time.monotonic()
        if left <= 0:
            return []
        parts = [(spec.graph.source, spec.protocol, config_key(spec.config)) for spec in specs]
        name = hashlib.sha256(repr(parts).encode()).hexdigest()
        with _claimed(self.folder / _CLAIMS / name) as claim:
            missing = RecordResults(self.records, self.device).missing(specs)
            if claim is None or claim.read() or not missing:
                return []
            executor = UntilDeadline(min(left, self.task_limit), _MAX_BATCH)
            lines = train_until(specs, self.records, executor, self.progress, self.device)
            if executor.is_over and left > self.task_limit:
                lines.append(f"{specs[0].label}: needs more than {self.task_limit:.0f} s")
            claim.write("\n".join(lines))
        return lines


def column_graph(column: Column, data: Path) -> Graph:
    """Return the graph of a column."""
    if column.is_file:
        return find_graph(str(data / column.dataset), data)
    return find_graph(column.dataset, data)


@contextmanager
def _claimed(path: Path) -> Iterator[TextIO | None]:
    """Yield a file that no other process has claimed, else ``None``. A killed process holds none.

    The file contains why its runs were given up, if they were.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        file.seek(0)
        yield file


def _same_structure(configs: Sequence[RunConfig]) -> list[list[RunConfig]]:
    """Group configurations that a device can train as one computation."""
    groups: dict[str, list[RunConfig]] = {}
    for config in configs:
        settings = config.to_dict()
        shape = {name: settings[name] for name in settings if name not in NUMERIC_SETTINGS}
        groups.setdefault(repr(sorted(shape.items())), []).append(config)
    return list(groups.values())
