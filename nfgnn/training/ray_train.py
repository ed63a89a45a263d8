"""The processes of one training as workers of a Ray cluster: Ray Train starts them and starts them again."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nfgnn.errors import UserError
from nfgnn.ray_cluster import ray_cluster
from nfgnn.training.distributed import Processes
from nfgnn.training.distributed_runs import from_plain, plain, run_in_processes
from nfgnn.training.row_data import store_of
from nfgnn.training.run_folder import Experiment, read_summary

_RESTARTS = 3


def train_on_ray(
    experiment: Experiment,
    folder: Path,
    workers: int,
    address: str | None = None,
    resume: bool = False,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Run an experiment on a store with the workers of a Ray cluster, and return its summary.

    The same loop as under ``torchrun`` (:func:`run_in_processes`). Store and run folder lie on a file system that all
    workers share. Workers that die are started again, at most three times, and go on from the last checkpoint.

    Args:
        experiment: on a store.
        folder: the run folder.
        workers: number of processes.
        address: of a cluster; else ``$RAY_ADDRESS``, else a cluster of its own is started here and ended.
        resume: take up what an earlier, killed call has left.
        say: told which cluster it is.
    """
    try:
        from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
        from ray.train.torch import TorchTrainer
    except ImportError:
        raise UserError(
            "--engine ray needs Ray: install it with `pip install 'nfgnn[cluster]'`"
        ) from None
    store = store_of(experiment.data)
    if store is None:
        raise UserError("--engine ray trains on a store: make one with `nfgnn precompute`")
    experiment.check()
    folder = folder.resolve()
    scratch = folder.with_name(f".{folder.name}.ray")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    what = {
        **plain(experiment, store.path),
        "folder": str(folder),
        "scratch": str(scratch),
        "resume": resume,
    }
    try:
        with ray_cluster(address, say, cpus=max(2, workers)) as ray:
            gpus = ray.cluster_resources().get("GPU", 0)
            TorchTrainer(
                _work,
                train_loop_config=what,
                scaling_config=ScalingConfig(num_workers=workers, use_gpu=gpus >= workers),
                run_config=RunConfig(
                    storage_path=str(scratch), failure_config=FailureConfig(max_failures=_RESTARTS)
                ),
            ).fit()
    except TrainingFailedError as error:
        raise UserError(
            f"the training on Ray failed: {_reason(error)}; --resume goes on where it was"
        ) from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return read_summary(folder)


def _work(what: Mapping[str, Any]) -> None:
    """What every worker does."""
    from ray.train.torch import get_device

    again = Path(what["scratch"]) / "started"
    resume = what["resume"] or again.exists()
    Processes.current().wait()  # before the first of them says that it has started
    again.touch()
    run_in_processes(from_plain(what, str(get_device())), Path(what["folder"]), resume)


def _reason(error: BaseException) -> str:
    failures = getattr(error, "worker_failures", None) or {0: error}
    text = str(next(iter(failures.values()))).strip()
    return text.splitlines()[-1] if text else type(error).__name__
