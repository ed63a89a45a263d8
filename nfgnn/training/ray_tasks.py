"""Runs of a table as tasks of a Ray cluster."""

from collections.abc import Iterator, Sequence
from typing import Any

from nfgnn.ray_cluster import Say, ray_cluster
from nfgnn.training.jobs import Job, Place, train
from nfgnn.training.records.database import Record


def on_cluster(
    jobs: Sequence[Job], place: Place, address: str | None, say: Say
) -> Iterator[tuple[Job, list[Record] | str]]:
    """Every job is a task that returns its records, in the order in which they end.

    Raw files must lie at the same place on all nodes. Only this process writes the database; a task that dies with its
    worker or its node is run again.
    """
    with ray_cluster(address, say) as ray:
        gpus = 1 if place.device != "cpu" and ray.cluster_resources().get("GPU", 0) else 0
        task = ray.remote(max_retries=-1, num_cpus=1, num_gpus=gpus)(_task)
        waiting: dict[Any, Job] = {task.remote(job, place): job for job in jobs}
        while waiting:
            ready, _ = ray.wait(list(waiting))
            for reference in ready:
                yield waiting.pop(reference), ray.get(reference)


def _task(job: Job, place: Place) -> list[Record] | str:
    import torch

    torch.set_num_threads(1)
    return train(job, place)
