"""Several runs of one configuration, written to a run folder: what ``nfgnn train`` does."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nfgnn.files import safe_name
from nfgnn.progress import Progress
from nfgnn.training import inputs
from nfgnn.training.config import RunConfig
from nfgnn.training.device import device_name, resolve_device
from nfgnn.training.distributed import ProcessGroup, restarted_by_torchrun
from nfgnn.training.execution import Executor, Work, execute, raise_first
from nfgnn.training.executors.torchrun import Torchrun, check_distributable, follow
from nfgnn.training.partition_batches import check_partitions
from nfgnn.training.records.read_run_folder import holds_finished_runs, read_summary
from nfgnn.training.records.run_folder import RunFolder
from nfgnn.training.run import Graph, RunSpec
from nfgnn.training.split_check import class_names


@dataclass(frozen=True)
class Experiment:
    """A configuration with the seeds it is run with."""

    graph: Graph
    protocol: str
    seeds: Sequence[int]
    config: RunConfig
    device: str = "auto"
    source: Mapping[str, Any] | None = None
    """Where the graph came from (``dataset``, ``columns``), to load it again later."""

    def specs(self) -> list[RunSpec]:
        """Return the runs."""
        return [RunSpec(self.graph, self.protocol, seed, self.config) for seed in self.seeds]

    def description(self) -> dict[str, Any]:
        """Return everything that decides the numbers."""
        return {
            "dataset": self.graph.name,
            "fingerprint": self.graph.fingerprint,
            "protocol": self.protocol,
            "seeds": list(self.seeds),
            "config": self.config.to_dict(),
        }

    def facts(self) -> dict[str, Any]:
        """Return what the summary of a run folder says beside the scores."""
        return {
            **self.description(),
            "model": self.config.model,
            "source": self.source,
            "device": device_name(self.device),
            "metric": self.specs()[0].metric.name,
            "classes": class_names(self.graph.data),
        }

    def check(self) -> None:
        """Raise a UserError for invalid input, before anything is trained or written."""
        specs = self.specs()
        data = specs[0].split()
        for spec in specs[1:]:
            spec.split()
        inputs.fit_scaling(data, self.config.training.features)
        model = self.config.build(*inputs.sizes(data))
        inputs.check_model(model, data)
        check_partitions(model, data.num_nodes, self.config.training)
        resolve_device(self.device)

    def default_folder(self) -> Path:
        """Return a folder below ``runs/``. The same experiment has the same folder."""
        what = self.description()
        text = json.dumps(what, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        name = f"{safe_name(what['dataset'])}-{self.config.model}-{self.protocol}-{digest}"
        return Path("runs") / name


def run_experiment(
    experiment: Experiment,
    folder: Path,
    executor: Executor,
    progress: Progress,
    resume: bool = False,
    overwrite: bool = False,
) -> dict[str, Any] | None:
    """Train every seed, write the run folder, and return its summary.

    A folder that holds these runs already is left as it is.

    In a process group (``torchrun``, Ray Train) every process calls this function. The first one
    writes the folder and returns the summary, the others return ``None``.

    Args:
        experiment: what is trained.
        folder: the run folder to write.
        executor: where runs execute; a group of processes trains every run together instead.
        progress: reports finished runs.
        resume: keep runs that an interrupted call has finished.
        overwrite: train again what the folder holds, or replace runs with other settings.
    """
    experiment.check()
    specs = experiment.specs()
    description = experiment.description()
    group = ProcessGroup.current()
    if group.size > 1:
        check_distributable(specs)
        executor = Torchrun()
        resume = resume or restarted_by_torchrun()
    if not group.is_first:
        work = Work(RunFolder(folder, experiment.seeds), experiment.device)
        follow(specs, experiment.device, work)
        return None
    if not overwrite and holds_finished_runs(folder, description):
        # Nothing is trained; this only starts the progress display.
        execute([], RunFolder(folder, []), executor, progress, experiment.device)
        progress.say(f"{folder} already contains these runs: use --overwrite to train them again")
        return read_summary(folder)
    with RunFolder.open(folder, description, resume, overwrite) as results:
        for line in results.finished_lines(specs):
            progress.say(line)
        raise_first(execute(specs, results, executor, progress, experiment.device))
        return results.publish(experiment.facts())
