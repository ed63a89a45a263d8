"""Every run of an experiment trained together by the workers of a Ray cluster."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nfgnn.errors import UserError
from nfgnn.object_store import is_remote
from nfgnn.progress import Progress
from nfgnn.ray_cluster import ray_cluster
from nfgnn.store import Store
from nfgnn.training import inputs
from nfgnn.training.distributed import ProcessGroup
from nfgnn.training.executors.in_process import InProcess
from nfgnn.training.experiment import Experiment, run_experiment
from nfgnn.training.records.read_run_folder import read_summary
from nfgnn.training.run import Graph

_MAX_RESTARTS = 3


def train_on_ray(
    experiment: Experiment,
    folder: Path,
    workers: int,
    address: str | None = None,
    resume: bool = False,
    say: Callable[[str], None] = print,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Run an experiment on a store with the workers of a Ray cluster, and return its summary.

    The workers form the same process group as under ``torchrun``. The run folder must lie on a file
    system that all workers share, and so must the store, unless it was opened by its URL: then
    every machine copies it to its own cache folder. Workers that die are restarted, at most three
    times, and continue from the last checkpoint.

    Args:
        experiment: on a store.
        folder: the run folder.
        workers: number of processes.
        address: of a cluster; by default ``$RAY_ADDRESS``, else a cluster is started and stopped.
        resume: keep what an earlier, interrupted call has left.
        say: receives a line that describes the cluster.
        overwrite: train again what the folder holds, or replace runs with other settings.
    """
    try:
        from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
        from ray.train.torch import TorchTrainer
    except ImportError:
        raise UserError(
            "--engine ray needs Ray: install it with `pip install 'nfgnn[cluster]'`"
        ) from None
    store = inputs.store_of(experiment.graph.data)
    if store is None:
        raise UserError("--engine ray trains on a store: compute one with `nfgnn precompute`")
    experiment.check()
    folder = folder.resolve()
    scratch = folder.with_name(f".{folder.name}.ray")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    task = {
        "experiment": replace(experiment, graph=_graph_of(store)),
        "folder": str(folder),
        "scratch": str(scratch),
        "resume": resume,
        "overwrite": overwrite,
    }
    try:
        with ray_cluster(address, say, cpus=max(2, workers)) as ray:
            gpus = ray.cluster_resources().get("GPU", 0)
            failures = FailureConfig(max_failures=_MAX_RESTARTS)
            TorchTrainer(
                _work,
                train_loop_config=task,
                scaling_config=ScalingConfig(num_workers=workers, use_gpu=gpus >= workers),
                run_config=RunConfig(storage_path=str(scratch), failure_config=failures),
            ).fit()
    except TrainingFailedError as error:
        raise UserError(
            f"the training on Ray failed: {_reason(error)}; --resume continues from the last "
            "checkpoint"
        ) from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return read_summary(folder)


def _graph_of(store: Store) -> Graph:
    """Return a store as workers on other machines open it."""
    if is_remote(store.origin):
        return Graph.named(store.origin)
    return Graph.named(str(store.path.resolve()))


def _work(task: Mapping[str, Any]) -> None:
    """Train in one of the workers."""
    from ray.train.torch import get_device

    started = Path(task["scratch"]) / "started"
    resume = task["resume"] or started.exists()
    overwrite = task["overwrite"]
    ProcessGroup.current().barrier()  # before the first worker leaves its mark
    started.touch()
    experiment = replace(task["experiment"], device=str(get_device()))
    label = f"{experiment.config.model} on {experiment.graph.name}"
    with Progress(label) as progress:
        run_experiment(experiment, Path(task["folder"]), InProcess(), progress, resume, overwrite)


def _reason(error: BaseException) -> str:
    """The last line of the first worker's error."""
    failures = vars(error).get("worker_failures") or {0: error}
    text = str(next(iter(failures.values()))).strip()
    return text.splitlines()[-1] if text else type(error).__name__
